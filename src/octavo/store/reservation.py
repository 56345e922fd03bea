"""Room that is kept free."""

from collections.abc import Callable
from typing import Self


class Reservation:
    """Of some bytes, until they are given back. As a context manager it gives them back at its end."""

    def __init__(self, num_bytes: int, give_back: Callable[[int], None]) -> None:
        self.num_bytes = num_bytes
        self._give_back = give_back

    def give_back(self) -> None:
        """Once, however often it is called."""
        num_bytes, self.num_bytes = self.num_bytes, 0
        self._give_back(num_bytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()
