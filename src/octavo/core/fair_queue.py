"""A queue that gives its owners turns by what they have used."""

from collections import deque
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Generic, TypeVar

T = TypeVar("T")

Owner = tuple[str, ...]
"""From the widest to the narrowest: a key, and a user of that key."""

MAX_DEBT = 4096
"""Tokens, a long answer's: what an owner has used beyond that while others had no need of it is forgiven."""


class FairQueue(Generic[T]):
    """Items wait in it; those that were popped are being worked on until their owner tells that one has ended.

    Next is the first item of whoever has used least: among keys, and then among that key's users. Who comes, or comes
    back after its last item was popped, begins where the others are on the average, so nobody saves up turns. An owner
    that has no item any more is forgotten. All owners in one queue have equally long paths.

    What a level's members use makes its clock go on by an equal part for each: the virtual time of generalized
    processor sharing (Parekh and Gallager 1993). To find the next item takes time linear in the members of a level.
    """

    def __init__(self) -> None:
        self._all = _Share[T]()
        self._turns = count(1)

    def __len__(self) -> int:
        return self._all.num_waiting

    def add(self, item: T, owner: Owner) -> None:
        path = self._path(owner)
        for level, member in pairwise(path):
            if member.num_waiting == 0:
                member.used = max(member.used, level.clock)
        _count(path, num_waiting=1)
        path[-1].line.append(item)

    def pop(self) -> T:
        """The next item; the queue must not be empty."""
        turn, path = next(self._turns), [self._all]
        while not path[-1].line:
            path.append(path[-1].next_part())
            path[-1].last_turn = turn
        item = path[-1].line.popleft()
        _count(path, num_waiting=-1, num_popped=1)
        return item

    def put_back(self, item: T, owner: Owner) -> None:
        """A popped item is the first of its owner's again."""
        path = self._path(owner)
        _count(path, num_waiting=1, num_popped=-1)
        path[-1].line.appendleft(item)

    def remove(self, item: T, owner: Owner) -> None:
        """An item that waits does so no more."""
        path = self._path(owner)
        path[-1].line.remove(item)
        _count(path, num_waiting=-1)
        self._forget(path, owner)

    def end(self, owner: Owner) -> None:
        """A popped item of the owner has ended."""
        path = self._path(owner)
        _count(path, num_popped=-1)
        self._forget(path, owner)

    def charge(self, owner: Owner, amount: float) -> None:
        """The owner, of whom there is an item, has used something."""
        for level, member in pairwise(self._path(owner)):
            level.clock += amount / len(level.parts)
            member.used = min(member.used + amount, level.clock + MAX_DEBT)

    def _path(self, owner: Owner) -> "list[_Share[T]]":
        path = [self._all]
        for name in owner:
            path.append(path[-1].part(name))
        return path

    def _forget(self, path: "list[_Share[T]]", owner: Owner) -> None:
        for (level, member), name in zip(pairwise(path), owner, strict=True):
            if member.num_waiting == member.num_popped == 0:
                del level.parts[name]
                return


@dataclass(slots=True, eq=False)
class _Share(Generic[T]):
    """A member of a level, and the level of its own members; only those of whom there is an item.

    used: on the clock of the level that it is a member of. clock: what its own members have used on the average.
    last_turn: when it was last chosen; among equals it decides.
    """

    used: float = 0.0
    clock: float = 0.0
    last_turn: int = 0
    num_waiting: int = 0
    num_popped: int = 0
    line: deque[T] = field(default_factory=deque)
    parts: "dict[str, _Share[T]]" = field(default_factory=dict)

    def part(self, name: str) -> "_Share[T]":
        if name not in self.parts:
            self.parts[name] = _Share(used=self.clock)
        return self.parts[name]

    def next_part(self) -> "_Share[T]":
        waiting = (part for part in self.parts.values() if part.num_waiting)
        return min(waiting, key=lambda part: (part.used, part.last_turn))


def _count(path: "list[_Share[T]]", *, num_waiting: int = 0, num_popped: int = 0) -> None:
    for share in path:
        share.num_waiting += num_waiting
        share.num_popped += num_popped
