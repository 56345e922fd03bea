"""Real engines without a server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from octavo.engine.specs import LlamaSpec
from octavo.engine.worker import WorkerEngine


@asynccontextmanager
async def running_worker(spec: LlamaSpec) -> AsyncIterator[WorkerEngine]:
    """An engine in a process of its own, ready."""
    engine = WorkerEngine(spec, fallback=msgspec.structs.replace(spec, use_extra_buffers=False))
    await engine.start()
    try:
        await engine.wait_ready()
        yield engine
    finally:
        await engine.close()
