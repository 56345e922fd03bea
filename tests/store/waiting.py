"""Waiting for what happens in the background."""

import asyncio
import time
from collections.abc import Callable

from octavo.store.prompt_log import PromptLog
from support.processes import SECONDS

POLL_INTERVAL = 0.001


async def until(holds: Callable[[], bool]) -> None:
    """Ask until it holds; nothing would tell us."""
    deadline = time.monotonic() + SECONDS
    while True:
        if holds():
            return
        assert time.monotonic() < deadline, f"{holds} did not hold within {SECONDS} s"
        await asyncio.sleep(POLL_INTERVAL)


async def until_moved(log: PromptLog) -> None:
    """Nothing waits for the database."""
    await until(lambda: log.status.num_waiting == 0)


async def until_degraded(log: PromptLog) -> None:
    await until(lambda: log.status.is_degraded)
