"""Where the tokens of slots are for the model, which is not always their number."""

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from octavo.engine.batching.runner import ImagePiece

Shifts = tuple[tuple[int, int], ...]
"""From these tokens on, ascending, positions are so much lower than the tokens' numbers."""


class Positions:
    """Positions of tokens by their numbers in a slot.

    Both are the same but behind an image of a model with M-RoPE: its tokens are in a grid, and the text goes on where
    the longer side of that ends (Wang et al., arXiv 2409.12191).
    """

    def __init__(self, num_slots: int) -> None:
        self._shifts: list[Shifts] = [()] * num_slots

    def of_text(self, slots: NDArray[np.int32], places: NDArray[np.int32]) -> NDArray[np.int32]:
        """Shape (n_tokens,), as both arguments. places: the tokens' numbers."""
        if not any(self._shifts):
            return places
        shifts = [self._shift(slot, place) for slot, place in zip(slots.tolist(), places.tolist(), strict=True)]
        return places - np.array(shifts, np.int32)

    def of_image(self, slot: int, place: int, piece: ImagePiece, num_tokens: int) -> NDArray[np.int32]:
        """Shape (num_tokens,), or (4, num_tokens) for a model with M-RoPE. place: the number of the first token.

        Notes where the text behind the image goes on.
        """
        embeddings = piece.embeddings
        start = place - piece.start
        first = start - self._shift(slot, start)
        self._note(slot, start + len(embeddings.values), len(embeddings.values) - embeddings.num_positions)
        if embeddings.places is None:
            return np.arange(first + piece.start, first + piece.start + num_tokens, dtype=np.int32)
        places = embeddings.places[:, piece.start : piece.start + num_tokens] + np.int32(first)
        return np.ascontiguousarray(np.vstack([places, np.zeros((1, num_tokens), np.int32)]))

    def truncated(self, slot: int, length: int) -> int:
        """The slot holds that many tokens from now on. Returns the position behind the last of them."""
        position = length - self._shift(slot, length)
        self._shifts[slot] = tuple(each for each in self._shifts[slot] if each[0] <= length)
        return position

    def of_slot(self, slot: int) -> Shifts:
        return self._shifts[slot]

    def restored(self, slot: int, shifts: Shifts) -> None:
        """The slot holds what a slot held for which `of_slot` gave this."""
        self._shifts[slot] = shifts

    def _shift(self, slot: int, place: int) -> int:
        shifts = self._shifts[slot]
        index = bisect_right(shifts, place, key=lambda shift: shift[0])
        return shifts[index - 1][1] if index else 0

    def _note(self, slot: int, end: int, shift: int) -> None:
        if shift and not any(each[0] == end for each in self._shifts[slot]):
            self._shifts[slot] += ((end, self._shift(slot, end) + shift),)
