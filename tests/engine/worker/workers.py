"""Engines in processes of their own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from octavo.engine.specs import EngineSpec, ScriptedSpec
from octavo.engine.worker import WorkerEngine
from octavo.engine.worker.engine import MAX_SILENCE, MAX_STEP

ANSWER = ScriptedSpec("abcdef", piece_bytes=2, num_slots=16)


@asynccontextmanager
async def starting(
    spec: EngineSpec = ANSWER,
    fallback: EngineSpec | None = None,
    *,
    max_silence: float = MAX_SILENCE,
    max_step: float = MAX_STEP,
) -> AsyncIterator[WorkerEngine]:
    engine = WorkerEngine(spec, fallback, max_silence=max_silence, max_step=max_step)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.close()


@asynccontextmanager
async def ready(
    spec: EngineSpec = ANSWER, *, max_silence: float = MAX_SILENCE, max_step: float = MAX_STEP
) -> AsyncIterator[WorkerEngine]:
    async with starting(spec, max_silence=max_silence, max_step=max_step) as engine:
        await engine.wait_ready()
        yield engine
