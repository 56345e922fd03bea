"""What sampling and scoring need of a row of scores: one row stays in the processor's cache, a batch would not."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.float32]
"""Scores or weights of one sequence, shape (vocabulary,)."""

Ids = NDArray[np.int64]
"""Token ids, ascending, shape (n,)."""

Exponentials = Callable[[Row, float], float]
"""Replaces each x of a row by exp(x - highest) and returns the sum of them all."""

BLOCK = 256


def plain_exponentials(row: Row, highest: float) -> float:
    np.subtract(row, np.float32(highest), out=row)
    np.exp(row, out=row)
    return float(row.sum(dtype=np.float64))


def at_least_nth(row: Row, n: int) -> Ids:
    """Ids of the n largest, and of all that equal the least of them; n ≥ 1."""
    if n >= len(row):
        return np.arange(len(row))
    whole = len(row) - len(row) % BLOCK
    highest = row[:whole].reshape(-1, BLOCK).max(axis=1)
    # So many blocks hold at least as much: their maxima bound the n-th largest of all from below.
    bound = np.partition(highest, -n)[-n] if n <= len(highest) else -np.inf
    ids = np.flatnonzero(row >= bound)
    values = row[ids]
    kept: Ids = ids[values >= np.partition(values, -n)[-n]]
    return kept


def largest(values: Row, ids: Ids, count: int) -> Ids:
    """Of these ids those of the `count` largest values; of equal ones, lower ids are kept first. values: of the ids."""
    if count >= len(ids):
        return ids
    threshold = np.partition(values, -count)[-count]
    is_kept = values > threshold
    is_kept[np.flatnonzero(values == threshold)[: count - np.count_nonzero(is_kept)]] = True
    kept: Ids = ids[is_kept]
    return kept
