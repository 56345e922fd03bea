"""Which sequence has which place in the KV cache."""

import heapq


class KvSlots:
    """Slots by number; the lowest free one is given out first.

    llama.cpp computes neighbouring slots in one graph, so active slots are kept together at the low end.
    """

    def __init__(self, num_slots: int) -> None:
        self._free = list(range(num_slots))

    @property
    def can_acquire(self) -> bool:
        return bool(self._free)

    def acquire(self) -> int:
        return heapq.heappop(self._free)

    def release(self, slot: int) -> None:
        heapq.heappush(self._free, slot)
