"""SIGTERM and SIGINT as events, and work that ends with one."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

STOPPING = (signal.SIGTERM, signal.SIGINT)


class StopSignals:
    """The first signal asks to stop, the second one to stop at once; a third one has its usual effect again."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self.force = asyncio.Event()
        self.last: signal.Signals | None = None

    def install(self) -> None:
        """On the running event loop, in the main thread."""
        for number in STOPPING:
            asyncio.get_running_loop().add_signal_handler(number, self._receive, number)

    def _receive(self, number: signal.Signals) -> None:
        self.last = number
        if not self.stop.is_set():
            self.stop.set()
            return
        self.force.set()
        for handled in STOPPING:
            asyncio.get_running_loop().remove_signal_handler(handled)


async def until(event: asyncio.Event, work: Coroutine[Any, Any, object]) -> None:
    """Do the work, and give it up when the event happens first."""
    task = asyncio.create_task(work)
    waiting = asyncio.create_task(event.wait())
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
    finally:
        task.cancel()
        waiting.cancel()
