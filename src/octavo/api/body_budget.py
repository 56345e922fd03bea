"""How much memory all bodies that are not whole yet may take together."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

MAX_RECEIVING = 256 * 2**20
"""Bytes."""
SMALL = 64 * 2**10
"""Bytes of a body that are not counted, so that large ones that come slowly never hold up small ones."""


class BodyBudget:
    """Bodies wait for each other, but for the oldest, which may be larger than all there is."""

    def __init__(self, max_bytes: int = MAX_RECEIVING) -> None:
        self._num_left = max_bytes
        self._growing: dict[BodyShare, None] = {}
        self._has_grown = asyncio.Event()

    @contextmanager
    def share(self) -> Iterator["BodyShare"]:
        """For one body, until it is whole."""
        share = BodyShare(self)
        try:
            yield share
        finally:
            self._growing.pop(share, None)
            self.take(-share.size)
            self._has_grown.set()

    def take(self, num_bytes: int) -> None:
        self._num_left -= num_bytes

    async def wait_for_room(self, share: "BodyShare") -> None:
        self._growing.setdefault(share)
        while self._num_left <= 0 and next(iter(self._growing)) is not share:
            self._has_grown.clear()
            await self._has_grown.wait()


class BodyShare:
    """What one body has taken."""

    def __init__(self, budget: BodyBudget) -> None:
        self.size = 0
        self._budget = budget

    async def grow(self, size: int) -> None:
        """The body has so many bytes; returns when more may be received."""
        if size <= SMALL:
            return
        self._budget.take(size - self.size)
        self.size = size
        await self._budget.wait_for_room(self)
