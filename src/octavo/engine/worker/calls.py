"""Calls of the child that wait for their answers."""

import asyncio
import itertools
from typing import Any

from octavo.errors import OctavoError


class Calls:
    """Numbers calls and gives each answer to whom it is for."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[Any]] = {}

    def next_number(self) -> int:
        return next(self._numbers)

    async def answer(self, number: int) -> Any:
        """What the call is settled with. Raises that where it is an error."""
        self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            return await self._waiting[number]
        finally:
            del self._waiting[number]

    def settle(self, number: int, result: object) -> None:
        """result: an answer or an OctavoError. Where nobody waits any more it is lost."""
        future = self._waiting.get(number)
        if future is None or future.done():
            return
        if isinstance(result, OctavoError):
            future.set_exception(result)
        else:
            future.set_result(result)

    def fail_all(self, kind: type[OctavoError], message: str) -> None:
        for number in self._waiting:
            self.settle(number, kind(message))
