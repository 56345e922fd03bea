"""Places, and who has how many of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from octavo.core.fair_queue import Owner

_MOST_SHARES = (4, 2, 1)
"""Bounds on what all together, a key and a user may have, in shares of theirs. They are more than one for those who
come where others have more than their share, which these got while they were alone."""


@dataclass(slots=True)
class _Level:
    taken: int = 0
    parts: "dict[str, _Level]" = field(default_factory=dict)  # those that have taken any


class Places:
    """Counts places, and shares them. Owners that have none are forgotten.

    A key's share is an equal part for each key that has a place or asks for one; and so of a key's share is a user's.
    """

    def __init__(self) -> None:
        self._all = _Level()

    @property
    def num_taken(self) -> int:
        return self._all.taken

    def has_one_for(self, owner: Owner, num_places: int, num_taken: int) -> bool:
        """Whether one of so many is free, or else the key or the user has less than its share of them.

        num_taken: as many as are counted here, or more.
        """
        for (share, taken), most_shares in zip(self._shares(owner, num_places, num_taken), _MOST_SHARES, strict=False):
            if taken + 1 <= share:
                return True
            if taken + 1 > most_shares * share:
                return False
        return False

    def _shares(self, owner: Owner, num_places: int, num_taken: int) -> Iterator[tuple[float, int]]:
        """Of all, the key and the user: what their shares are and what they have."""
        share, level = float(num_places), self._all
        yield share, num_taken
        for name in owner:
            share /= len(level.parts) + (name not in level.parts)
            level = level.parts.get(name) or _Level()
            yield share, level.taken

    def take(self, owner: Owner, number: int) -> None:
        level = self._all
        level.taken += number
        for name in owner:
            level = level.parts.setdefault(name, _Level())
            level.taken += number

    def give_back(self, owner: Owner, number: int) -> None:
        level = self._all
        level.taken -= number
        for name in owner:
            part = level.parts[name]
            part.taken -= number
            if not part.taken:
                del level.parts[name]
                return
            level = part
