"""Real engines without a server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from octavo.engine.specs import LlamaSpec
from octavo.engine.worker import WorkerEngine
from octavo.engine.worker.engine import MAX_SILENCE


@asynccontextmanager
async def running_worker(spec: LlamaSpec, *, max_silence: float = MAX_SILENCE) -> AsyncIterator[WorkerEngine]:
    """An engine in a process of its own, ready."""
    fallback = msgspec.structs.replace(spec, use_extra_buffers=False)
    engine = WorkerEngine(spec, fallback, max_silence=max_silence)
    await engine.start()
    try:
        await engine.wait_ready()
        yield engine
    finally:
        await engine.close()
