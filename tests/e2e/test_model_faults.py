"""The demo model's process killed, stopped and starved, at each point of its life."""

import asyncio
import os
import signal
import sys
from contextlib import suppress

import psutil
import pytest

from engine.builders import collect, request, until
from octavo.engine.base import EngineState
from octavo.engine.specs import LlamaSpec
from octavo.engine.worker import WorkerEngine
from octavo.errors import EngineDied, ModelLoadError
from support.workers import running_worker

from .wire import MODEL_FILE

SILENCE = 4.0
SPEC = LlamaSpec(str(MODEL_FILE), context_length=1024, num_slots=4, num_threads=1)
PROMPT = tuple(range(1000, 1008))
LONG_PROMPT = tuple(range(1000, 1900))
TOO_LITTLE = 400 * 2**20
"""Bytes of address space: enough for Python and its libraries, not for the model and its KV cache."""

pytestmark = pytest.mark.slow


async def works(engine: WorkerEngine) -> bool:
    tokens, _ = await collect(engine.generate(request(PROMPT, 4, ignore_eos=True)))
    return len(tokens) == 4


async def has_returned(engine: WorkerEngine, num_restarts: int) -> None:
    await until(lambda: engine.health().num_restarts == num_restarts and engine.health().state is EngineState.READY)
    assert await works(engine)


async def test_it_comes_back_from_every_death_and_answers_what_was_in_its_hands() -> None:
    async with running_worker(SPEC, max_silence=SILENCE) as engine:
        assert engine.pid is not None
        os.kill(engine.pid, signal.SIGSEGV)
        await has_returned(engine, 1)

        prefill = asyncio.create_task(collect(engine.generate(request(LONG_PROMPT, 4))))
        await until(lambda: engine.health().num_running == 1 or prefill.done())
        os.kill(engine.pid, signal.SIGKILL)
        with pytest.raises(EngineDied):
            await prefill
        await until(lambda: engine.health().num_restarts == 2 and engine.pid is not None)
        os.kill(engine.pid, signal.SIGKILL)  # while it loads
        await has_returned(engine, 3)

        decoding = engine.generate(request(PROMPT, 900, ignore_eos=True))
        await anext(decoding)
        os.kill(engine.pid, signal.SIGSTOP)
        with pytest.raises(EngineDied):
            await collect(decoding)
        await has_returned(engine, 4)
        assert engine.health().deaths == {"SIGSEGV": 1, "SIGKILL": 2, "silent": 1}


async def starve(engine: WorkerEngine) -> None:
    """Every child, as soon as it is there."""
    while True:
        if engine.pid is not None:
            with suppress(psutil.NoSuchProcess, ProcessLookupError):
                psutil.Process(engine.pid).rlimit(psutil.RLIMIT_AS, (TOO_LITTLE, TOO_LITTLE))
        await asyncio.sleep(0.01)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere another process cannot be limited")
async def test_where_memory_does_not_do_the_model_is_refused_with_a_message_and_nobody_hangs() -> None:
    engine = WorkerEngine(SPEC)
    await engine.start()
    starving = asyncio.create_task(starve(engine))
    try:
        with pytest.raises(ModelLoadError, match="load"):
            await engine.wait_ready()
    finally:
        starving.cancel()
        await engine.close()
