"""Who may fetch now."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary

from octavo.errors import Overloaded

MAX_FETCHES = 16
"""At a time, for all requests together."""

MAX_FETCHES_OF_HOST = 4
"""So that one that answers slowly or never does not hold up the others."""


class FetchTurns:
    """Turns at fetching, of which no host takes more than some."""

    def __init__(self, *, max_wait: float) -> None:
        """max_wait: seconds for which to wait for a turn."""
        self._max_wait = max_wait
        self._turns = asyncio.Semaphore(MAX_FETCHES)
        self._hosts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, host: str) -> AsyncIterator[None]:
        """As long as the block runs, something may be fetched from the host. Raises Overloaded."""
        async with AsyncExitStack() as turns:
            try:
                async with asyncio.timeout(self._max_wait):
                    # The host's first: who waits for it takes no turn from others.
                    await turns.enter_async_context(self._turns_at(host))
                    await turns.enter_async_context(self._turns)
            except TimeoutError:
                raise Overloaded("Too many images are being fetched; try again later.") from None
            yield

    def _turns_at(self, host: str) -> asyncio.Semaphore:
        """Remembered as long as somebody has one or waits for one."""
        return self._hosts.setdefault(host, asyncio.Semaphore(MAX_FETCHES_OF_HOST))
