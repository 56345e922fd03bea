"""A prompt log in a folder of a test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from octavo.store.prompt_log import PromptLog, Retention


@asynccontextmanager
async def open_log(folder: Path, *, max_spool: int = 2**20) -> AsyncIterator[PromptLog]:
    log = PromptLog(f"sqlite:///{folder / 'log.db'}", folder / "spool", max_spool, Retention())
    await log.start()
    try:
        yield log
    finally:
        await log.close()
