"""Who uses something that is to be freed once nobody does."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Leases:
    """Counts the users of a thing. For one event loop."""

    def __init__(self) -> None:
        self.num_held = 0
        self._none_held = asyncio.Event()
        self._none_held.set()

    @contextmanager
    def lease(self) -> Iterator[None]:
        """The thing is used as long as the block runs."""
        self.num_held += 1
        self._none_held.clear()
        try:
            yield
        finally:
            self.num_held -= 1
            if self.num_held == 0:
                self._none_held.set()

    async def all_returned(self) -> None:
        """Wait until nobody uses it. Meant for when nobody can begin to any more."""
        await self._none_held.wait()
