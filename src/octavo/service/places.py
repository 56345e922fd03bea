"""Places, and who has how many of them."""

from collections import Counter

from octavo.core.fair_queue import Owner


class Places:
    """Counts; what the bounds are is its user's business. Owners that have no place are forgotten."""

    def __init__(self) -> None:
        self._taken: Counter[Owner] = Counter()  # by each beginning of the owners

    @property
    def num_taken(self) -> int:
        return self._taken[()]

    def num_strange_levels(self, owner: Owner) -> int:
        """2 for an owner whose key has no place, 1 where only its user has none, 0 where it has one."""
        return sum(not self._taken[beginning] for beginning in _beginnings(owner) if beginning)

    def take(self, owner: Owner, number: int) -> None:
        for beginning in _beginnings(owner):
            self._taken[beginning] += number

    def give_back(self, owner: Owner, number: int) -> None:
        for beginning in _beginnings(owner):
            self._taken[beginning] -= number
            if not self._taken[beginning]:
                del self._taken[beginning]


def _beginnings(owner: Owner) -> list[Owner]:
    return [owner[:length] for length in range(len(owner) + 1)]
