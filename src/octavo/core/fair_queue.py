"""A queue that gives its owners turns by what they have used."""

from collections import deque
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Generic, TypeVar

T = TypeVar("T")

Owner = tuple[str, ...]
"""From the widest to the narrowest: a key, and a user of that key."""

MAX_DEBT = 4096
"""Tokens, a long answer's: what an owner has used beyond that while others had no need of it is forgiven, and what
others owe it beyond that is lost to it."""


class FairQueue(Generic[T]):
    """Items wait in it; those that were popped are being worked on until their owner tells that one has ended.

    Next is the first item of whoever has used least: among keys, and then among that key's users. Who comes begins
    where the others are on the average. Who is away, with no item in the queue, saves up nothing; who comes back soon,
    as clients do that ask again when they have their answer, is as far ahead or behind as it was when it left. So it
    is all the same for its share whether its items are few and long or many and short.

    What a level's members use makes its clock go on by an equal part for each: the virtual time of generalized
    processor sharing (Parekh and Gallager 1993). Who left is forgotten once the clock has made up for the difference:
    others must have used that much meanwhile, so names that come once never get many. All owners in one queue have
    equally long paths. To find the next item takes time linear in the members of a level.
    """

    def __init__(self) -> None:
        self._all = _Share[T]()
        self._turns = count(1)

    def __len__(self) -> int:
        return self._all.num_waiting

    def add(self, item: T, owner: Owner) -> None:
        path = [self._all]
        for name in owner:
            path.append(path[-1].come(name))
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
        _leave(path, owner)

    def end(self, owner: Owner) -> None:
        """A popped item of the owner has ended."""
        path = self._path(owner)
        _count(path, num_popped=-1)
        _leave(path, owner)

    def charge(self, owner: Owner, amount: float) -> None:
        """The owner, of whom there is an item, has used something."""
        for level, member in pairwise(self._path(owner)):
            level.clock += amount / len(level.parts)
            member.used = min(member.used + amount, level.clock + MAX_DEBT)

    def _path(self, owner: Owner) -> "list[_Share[T]]":
        path = [self._all]
        for name in owner:
            path.append(path[-1].parts[name])
        return path


@dataclass(slots=True, eq=False)
class _Share(Generic[T]):
    """A member of a level, and the level of its own members.

    used: on the clock of the level that it is a member of. left: that clock when it left.
    clock: what its own members have used on the average. parts: those of whom there is an item. gone: who left.
    last_turn: when it was last chosen; among equals it decides.
    """

    used: float = 0.0
    left: float = 0.0
    clock: float = 0.0
    last_turn: int = 0
    num_waiting: int = 0
    num_popped: int = 0
    line: deque[T] = field(default_factory=deque)
    parts: "dict[str, _Share[T]]" = field(default_factory=dict)
    gone: "dict[str, _Share[T]]" = field(default_factory=dict)

    def come(self, name: str) -> "_Share[T]":
        if name not in self.parts:
            self.parts[name] = self._back(name)
        part = self.parts[name]
        part.used = max(part.used, self.clock - MAX_DEBT)
        return part

    def _back(self, name: str) -> "_Share[T]":
        if name not in self.gone:
            return _Share(used=self.clock)
        part = self.gone.pop(name)
        behind = max(0.0, part.left - part.used)
        part.used = max(part.used, self.clock - behind)
        return part

    def leave(self, name: str) -> None:
        part = self.gone[name] = self.parts.pop(name)
        part.left = self.clock
        self.gone = {name: part for name, part in self.gone.items() if self.clock < part.left + part.difference}

    @property
    def difference(self) -> float:
        """How far it was ahead or behind when it left."""
        return abs(self.used - self.left)

    def next_part(self) -> "_Share[T]":
        waiting = (part for part in self.parts.values() if part.num_waiting)
        return min(waiting, key=lambda part: (part.used, part.last_turn))


def _count(path: "list[_Share[T]]", *, num_waiting: int = 0, num_popped: int = 0) -> None:
    for share in path:
        share.num_waiting += num_waiting
        share.num_popped += num_popped


def _leave(path: "list[_Share[T]]", owner: Owner) -> None:
    """Whoever of the path has no item any more does."""
    for (level, member), name in zip(pairwise(path), owner, strict=True):
        if member.num_waiting == member.num_popped == 0:
            level.leave(name)
            return
