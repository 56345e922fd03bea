"""Which sequence has which place in the KV cache, and what is left there of those before it."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from octavo.engine.batching.sequence import Sequence

MIN_SHARED = 16
"""A slot's cache is often about as large as the weights, and computing a token reads those: copying it takes as long as
a few tokens do, and a shorter prefix is computed again."""

Reusable = Callable[[int, Sequence], int]
"""From the number of tokens that a sequence has in common with another, and that other one, to how many of them may be
taken over from it."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """The first `length` tokens of a sequence, in a slot. is_computed: now, not only when its holder gets there."""

    slot: int
    length: int
    is_computed: bool


class KvSlots:
    """Slots by number; the lowest free one is given out first.

    llama.cpp computes neighbouring slots in one graph, so active slots are kept together at the low end. A slot that
    was released holds its sequence's computed tokens until it is given out again: they are the prefix cache, which so
    remembers as many conversations as ran at the same time.
    """

    def __init__(self, num_slots: int, reusable: Reusable) -> None:
        self._free = list(range(num_slots))
        self._holders: list[Sequence | None] = [None] * num_slots
        self._reusable = reusable

    @property
    def can_acquire(self) -> bool:
        return bool(self._free)

    def acquire(self, sequence: Sequence) -> int:
        slot = heapq.heappop(self._free)
        self._holders[slot] = sequence
        return slot

    def release(self, slot: int) -> None:
        """Give the slot back; what its sequence has computed stays in it."""
        heapq.heappush(self._free, slot)

    def forget(self, slot: int) -> None:
        """The slot holds nothing any more."""
        self._holders[slot] = None

    @property
    def leftovers(self) -> list[int]:
        """Free slots that still hold something."""
        return [slot for slot in self._free if self._holders[slot] is not None]

    def find_prefix(self, sequence: Sequence) -> Prefix | None:
        """The longest beginning of the sequence that need not be computed again; of equal ones, one that is ready."""
        head = sequence.tokens[:MIN_SHARED]
        found = [
            prefix
            for slot, holder in enumerate(self._holders)
            if holder is not None and np.array_equal(holder.tokens[:MIN_SHARED], head)
            if (prefix := self._prefix(slot, holder, sequence)).length >= MIN_SHARED
        ]
        return max(found, key=lambda prefix: (prefix.length, prefix.is_computed), default=None)

    def _prefix(self, slot: int, holder: Sequence, sequence: Sequence) -> Prefix:
        # A prompt that is being computed is worth waiting for; tokens that are still to be drawn are not.
        num_known = max(holder.num_prompt_tokens, holder.num_computed) if holder.slot == slot else holder.num_computed
        known = holder.tokens[:num_known]
        common = min(_num_common(known, sequence.tokens), sequence.num_reusable)
        length = self._reusable(common, holder)
        return Prefix(slot, length, length <= holder.num_computed)


def _num_common(a: NDArray[np.int32], b: NDArray[np.int32]) -> int:
    """How many tokens two sequences begin with alike."""
    length = min(len(a), len(b))
    differs = a[:length] != b[:length]
    return int(differs.argmax()) if differs.any() else length
