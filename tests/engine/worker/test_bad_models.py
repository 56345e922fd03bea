"""Model files with a header that lies: whatever they do to the process that reads them, it is not this one."""

import asyncio
from pathlib import Path

import pytest

from engine.builders import collect, request, until
from numeric.tiny_gguf import write_tiny_gguf
from octavo.engine.base import EngineState
from octavo.engine.specs import LlamaSpec
from octavo.errors import OctavoError
from support.gguf_mutations import header_mutations

from .workers import starting

NUM_FILES = 12
AT_A_TIME = 2


async def fate(path: Path) -> str:
    """What becomes of a server that is given this file."""
    async with starting(LlamaSpec(str(path), context_length=64, num_slots=2, num_threads=1)) as engine:
        await until(lambda: engine.health().state is not EngineState.LOADING)
        if engine.health().state is not EngineState.READY:
            assert engine.health().message
            return str(engine.health().state)
        try:
            tokens, _ = await collect(engine.generate(request(max_tokens=2, ignore_eos=True)))
        except OctavoError as error:
            return type(error).__name__
        return f"{len(tokens)} tokens"


@pytest.mark.slow
async def test_a_file_that_lies_is_refused_or_ends_its_own_process_or_is_served(tmp_path: Path) -> None:
    write_tiny_gguf(tmp_path / "tiny.gguf")
    places = asyncio.Semaphore(AT_A_TIME)

    async def try_it(number: int, data: bytes) -> str:
        path = tmp_path / f"{number}.gguf"
        path.write_bytes(data)
        async with places:
            return await fate(path)

    files = list(header_mutations(tmp_path / "tiny.gguf", NUM_FILES, seed=7))
    fates = await asyncio.gather(*(try_it(number, data) for number, (_, data) in enumerate(files)))
    allowed = {"failed", "restarting", "2 tokens", "EngineError", "EngineDied", "EngineUnavailable"}
    for (what, _), became in zip(files, fates, strict=True):
        assert became in allowed, what
