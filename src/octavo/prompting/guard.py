"""What one rendering of an untrusted template may use."""

import time
from collections.abc import Collection, Iterable
from typing import NoReturn, TypeVar

from octavo.errors import TemplateError

MAX_SIZE = 16 * 2**20
"""Characters of a string, or of the text a value would make; twice what the largest request body holds."""
MAX_ITEMS = 1_000_000
"""Items of a list or dict, nested ones included."""
MAX_INT_BITS = 4096
"""Bits of an integer: far above need, and small enough that no arithmetic takes noticeable time."""
MAX_TOTAL = 512 * 2**20
"""Characters and items that a whole rendering may make, kept or not."""

_VIEWS: tuple[type[Collection[object]], ...] = (type({}.keys()), type({}.values()), type({}.items()))
_LISTS: tuple[type[Collection[object]], ...] = (list, tuple, set, frozenset, *_VIEWS)
_CONTAINERS: tuple[type[Collection[object]], ...] = (dict, *_LISTS)
_Value = TypeVar("_Value")


class RenderingTooSlow(TemplateError):
    """A rendering has used up its time."""


class RenderGuard:
    """Time and memory of one rendering, in one thread. Each method raises TemplateError when they are used up.

    seconds: of the processor's time.

    The work between two calls is bounded by the size of values, so no thread or signal has to interrupt it.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # The thread's own time: a template never waits, and must not fail because other threads do work.
        self._ends_at = time.thread_time() + seconds
        self._left = MAX_TOTAL

    def tick(self) -> None:
        """Check the deadline."""
        if time.thread_time() > self._ends_at:
            raise RenderingTooSlow(_stopped(f"it ran longer than {self._seconds:g} seconds"), param="messages")

    def pay(self, size: int) -> None:
        """Account for `size` characters or items that are about to be made."""
        self._left -= size
        if size > MAX_SIZE or self._left < 0:
            self.refuse("it makes too much text")

    def meter(self, value: _Value) -> _Value:
        """A value that has just been made, once the time and its own size, without its items', are accounted for."""
        self.tick()
        if isinstance(value, str):
            self.pay(len(value))
        elif isinstance(value, int):
            self._digits(value)
        elif isinstance(value, _CONTAINERS):
            self.pay(self._count(len(value)))
        return value

    def text(self, value: object) -> str:
        """str(value), accounted for."""
        self.pay(self.weigh(value))
        return str(value)

    def weigh(self, value: object) -> int:
        """Characters and items of a value, counted as often as its text would show them or a comparison see them.

        A list that holds another twice, and so on for 40 levels, is small in memory but not in these.
        """
        self.tick()
        size = num_items = 0
        stack: list[object] = [value]
        while stack:
            part = stack.pop()
            if isinstance(part, str):
                size += len(part)
            elif isinstance(part, int):
                size += self._digits(part)
            elif isinstance(part, _LISTS):
                num_items = self._count(num_items + len(part))
                stack.extend(part)
            elif isinstance(part, dict):
                num_items = self._count(num_items + 2 * len(part))
                stack.extend(part)
                stack.extend(part.values())
            if size > MAX_SIZE:
                self.refuse("it makes too much text")
        return size + num_items

    def join(self, pieces: Iterable[str], separator: str = "") -> str:
        """str.join, stopping before the result grows too large. One piece is itself: it may be more than a str."""
        kept = []
        size = 0
        for piece in pieces:
            self.tick()
            kept.append(piece)
            size += len(piece) + len(separator)
            if size > MAX_SIZE:
                self.refuse("it makes too much text")
        self.pay(size)
        return kept[0] if len(kept) == 1 else separator.join(kept)

    def refuse(self, reason: str) -> NoReturn:
        raise TemplateError(_stopped(reason), param="messages")

    def _digits(self, number: int) -> int:
        bits = number.bit_length()
        if bits > MAX_INT_BITS:
            self.refuse("it makes too large a number")
        return bits // 3 + 1

    def _count(self, num_items: int) -> int:
        if num_items > MAX_ITEMS:
            self.refuse("it makes too long a list")
        return num_items


def _stopped(reason: str) -> str:
    return f"the model's chat template was stopped: {reason}"
