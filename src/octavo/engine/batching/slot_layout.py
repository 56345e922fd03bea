"""Where sequences that share steps are put. A graph takes neighbouring slots, so those of one group belong together."""

from collections.abc import Hashable
from collections.abc import Sequence as Sequence_

import numpy as np
from numpy.typing import NDArray

Groups = Sequence_[Hashable | None]
"""Of the sequence in each slot; None where a slot is free."""


def choose_slot(groups: Groups, group: Hashable) -> int:
    """The free slot that is nearest to the group's; for its first one, the farthest from those of others."""
    slots = np.arange(len(groups))
    own = np.array([other == group for other in groups])
    taken = np.array([other is not None for other in groups])
    if not taken.any():
        return 0
    far = len(groups)
    distance = _distance(slots, slots[own] if own.any() else slots[taken])
    if own.any():
        return int(np.where(taken, far, distance).argmin())
    return int(np.where(taken, -1, distance).argmax())


def is_scattered(groups: Groups) -> bool:
    """Whether a group has a slot that is not a neighbour of its others."""
    return any(slots[-1] - slots[0] >= len(slots) for slots in _slots_of(groups))


def gathered(groups: Groups) -> dict[int, int]:
    """New slots, by the old ones, of few sequences with whose moves no group is scattered any more."""
    moves: dict[int, int] = {}
    start, num_left = 0, sum(group is not None for group in groups)
    for slots in sorted(map(np.array, _slots_of(groups)), key=np.mean):
        num_left -= len(slots)
        start = _window(slots, start, len(groups) - num_left)
        window = range(start, start + len(slots))
        leaving = (slot for slot in slots.tolist() if slot not in window)
        moves.update(zip(leaving, (slot for slot in window if slot not in slots), strict=True))
        start = window.stop
    return moves


def _window(slots: NDArray[np.int64], first: int, end: int) -> int:
    """Where so many slots in a row begin, between these bounds, that hold most of the given ones."""
    belongs = np.isin(np.arange(first, end), slots)
    num_inside = np.convolve(belongs, np.ones(len(slots), np.int64), mode="valid")
    return first + int(num_inside.argmax())


def _slots_of(groups: Groups) -> list[list[int]]:
    """Of each group, ascending."""
    slots: dict[Hashable, list[int]] = {}
    for slot, group in enumerate(groups):
        if group is not None:
            slots.setdefault(group, []).append(slot)
    return list(slots.values())


def _distance(slots: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.int64]:
    distance: NDArray[np.int64] = np.abs(slots[:, None] - others[None, :]).min(axis=1)
    return distance
