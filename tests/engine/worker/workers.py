"""Engines in processes of their own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from octavo.engine.specs import EngineSpec, ScriptedSpec
from octavo.engine.worker import WorkerEngine

ANSWER = ScriptedSpec("abcdef", piece_bytes=2, num_slots=16)


@asynccontextmanager
async def starting(spec: EngineSpec = ANSWER, fallback: EngineSpec | None = None) -> AsyncIterator[WorkerEngine]:
    engine = WorkerEngine(spec, fallback)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.close()


@asynccontextmanager
async def ready(spec: EngineSpec = ANSWER) -> AsyncIterator[WorkerEngine]:
    async with starting(spec) as engine:
        await engine.wait_ready()
        yield engine
