"""Which parts of the slots' keys and values are copies of each other, for an attention that reads them once for all."""

import numpy as np
from numpy.typing import NDArray

CELLS_PER_TILE = 32

TileIds = NDArray[np.int64]

NO_TILES: TileIds = np.empty((0, 0), np.int64)
"""Of no cache."""


class CacheTiles:
    """Numbers every tile of the KV cache, in all layers, so that tiles of one number hold the same bytes.

    A slot holds one sequence, whose token at position p is in cell p: slots are only ever written on, cut back, and
    overwritten as a whole.
    """

    def __init__(self, num_slots: int, cells_per_slot: int) -> None:
        self.ids: TileIds = np.zeros((num_slots, cells_per_slot // CELLS_PER_TILE), np.int64)
        self._next = 1

    def written(self, slots: NDArray[np.int32], positions: NDArray[np.int32]) -> None:
        """Tokens were computed, whose tiles are now like no other. Both arrays have shape (n_tokens,)."""
        self.ids[slots, positions // CELLS_PER_TILE] = np.arange(self._next, self._next + len(slots))
        self._next += len(slots)

    def of(self, slot: int) -> TileIds:
        return np.copy(self.ids[slot])

    def restored(self, slot: int, ids: TileIds) -> None:
        """The slot holds again what a slot held when its tiles were these."""
        self.ids[slot] = ids
