"""Adapters of an engine in another process, and of the one that takes its place."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import psutil
import pytest

from engine.builders import until
from numeric.engines import NUM_SLOTS, Answer, answer, running, scored
from numeric.tiny_gguf import TinyModel, write_tiny_gguf
from numeric.tiny_lora import write_tiny_lora
from octavo.core.adapters import Adapter, digest_of
from octavo.engine.base import EngineState
from octavo.engine.worker import WorkerEngine
from octavo.errors import AdapterRefused, EngineDied, EngineError, EngineUnavailable

from .workers import ready

PROMPT = tuple(range(40, 60))
LOST = "lost the adapter of this request"
_keys = count()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    return write_tiny_gguf(tmp_path_factory.mktemp("served") / "tiny.gguf")


def written(folder: Path, tiny: TinyModel, seed: int) -> Adapter:
    path = write_tiny_lora(folder / f"{seed}.gguf", tiny, seed=seed).path
    with path.open("rb") as file:
        return Adapter(f"key-{next(_keys)}", str(path), digest_of(file))


@asynccontextmanager
async def serving(tiny: TinyModel) -> AsyncIterator[WorkerEngine]:
    async with running(tiny.path, cache_type_k="f32", cache_type_v="f32") as engine:
        yield engine


async def kill(engine: WorkerEngine, num_restarts: int = 1) -> None:
    assert engine.pid is not None
    os.kill(engine.pid, signal.SIGKILL)
    await until(lambda: engine.health().num_restarts == num_restarts and engine.health().state is EngineState.READY)


async def of(engine: WorkerEngine, key: str = "") -> Answer:
    return await answer(engine, replace(scored(PROMPT, 4), adapter=key))


async def test_a_new_child_has_the_adapters_that_were_loaded_and_not_those_that_were_unloaded(
    tiny: TinyModel, tmp_path: Path
) -> None:
    kept, gone = (written(tmp_path, tiny, seed) for seed in (1, 2))
    async with serving(tiny) as engine:
        for adapter in (kept, gone):
            await engine.load_adapter(adapter)
        await engine.unload_adapter(gone.key)
        before = [await of(engine), await of(engine, kept.key)]
        await kill(engine)
        assert [await of(engine), await of(engine, kept.key)] == before
        with pytest.raises(EngineError, match=LOST):
            await of(engine, gone.key)
    assert before[0].logprobs != before[1].logprobs


@pytest.mark.parametrize("is_missing", [True, False])
async def test_an_adapter_that_cannot_be_loaded_again_fails_its_own_requests_only(
    is_missing: bool, tiny: TinyModel, tmp_path: Path
) -> None:
    kept, lost = (written(tmp_path, tiny, seed) for seed in (1, 2))
    async with serving(tiny) as engine:
        for adapter in (lost, kept):
            await engine.load_adapter(adapter)
        before = [await of(engine), await of(engine, kept.key)]
        if is_missing:
            os.unlink(lost.path)
        else:
            write_tiny_lora(Path(lost.path), tiny, seed=3)
        await kill(engine)
        results = await asyncio.gather(*(of(engine, key) for key in ("", lost.key, kept.key)), return_exceptions=True)
        assert type(results[1]) is EngineError
        assert LOST in results[1].message
        # As before, but that they were computed together.
        assert [result.tokens for result in (results[0], results[2])] == [each.tokens for each in before]
        assert (engine.health().num_restarts, engine.info.num_slots) == (1, NUM_SLOTS)
        assert engine.health().lost_adapters == {lost.key}


async def test_what_was_lost_stays_so_and_can_be_loaded_as_another(tiny: TinyModel, tmp_path: Path) -> None:
    adapter = written(tmp_path, tiny, 1)
    async with serving(tiny) as engine:
        await engine.load_adapter(adapter)
        os.rename(adapter.path, tmp_path / "away.gguf")
        await kill(engine)
        os.rename(tmp_path / "away.gguf", adapter.path)
        await engine.load_adapter(replace(adapter, key="again"))
        await kill(engine, num_restarts=2)
        assert engine.health().lost_adapters == {adapter.key}
        assert (await of(engine, "again")).tokens
        with pytest.raises(EngineError, match=LOST):
            await of(engine, adapter.key)


async def test_what_was_refused_is_not_loaded_again(tiny: TinyModel, tmp_path: Path) -> None:
    good = written(tmp_path, tiny, 1)
    async with serving(tiny) as engine:
        with pytest.raises(AdapterRefused, match="has changed"):
            await engine.load_adapter(replace(good, key="changed", digest="0"))
        (tmp_path / "none.gguf").write_bytes(b"none")
        with pytest.raises(AdapterRefused, match="no adapter for this model"):
            await engine.load_adapter(replace(good, key="none", path=str(tmp_path / "none.gguf")))
        await kill(engine)
        for key in ("changed", "none"):
            with pytest.raises(EngineError, match=LOST):
                await of(engine, key)


async def test_calls_to_a_child_that_dies_say_so() -> None:
    adapter = Adapter("key", "/adapters/a.gguf", "")
    async with ready() as engine:
        pid = engine.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        await until(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)
        calls = [asyncio.create_task(call) for call in (engine.load_adapter(adapter), engine.unload_adapter("key"))]
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGKILL)
        assert [type(result) for result in await asyncio.gather(*calls, return_exceptions=True)] == [EngineDied] * 2


async def test_between_two_children_adapters_are_not_loaded_but_can_be_unloaded() -> None:
    async with ready() as engine:
        await engine.load_adapter(adapter := Adapter("key", "/adapters/a.gguf", ""))
        assert engine.pid is not None
        os.kill(engine.pid, signal.SIGKILL)
        await until(lambda: engine.health().state is EngineState.RESTARTING)
        with pytest.raises(EngineUnavailable):
            await engine.load_adapter(adapter)
        await engine.unload_adapter(adapter.key)
        await until(lambda: engine.health().state is EngineState.READY)
        await engine.load_adapter(adapter)


async def test_close_refuses_calls() -> None:
    async with ready() as engine:
        await engine.close()
        with pytest.raises(EngineUnavailable):
            await engine.load_adapter(Adapter("key", "/adapters/a.gguf", ""))
