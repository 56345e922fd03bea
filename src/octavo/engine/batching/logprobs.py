"""From logits to what the model itself thought of tokens."""

from collections.abc import Sequence as Sequence_

import numpy as np
from numpy.typing import NDArray

from octavo.core.output import TokenLogprob


def score(logits: NDArray[np.float32], tokens: Sequence_[int], num_top: int) -> tuple[TokenLogprob, ...]:
    """The log-probability of one token for each row of logits, shape (n, vocabulary), and the num_top best of the row.

    Natural logarithms of the softmax: x - max - log Σ exp(x - max).
    """
    return tuple(_score(row, token, num_top) for row, token in zip(logits, tokens, strict=True))


def _score(row: NDArray[np.float32], token: int, num_top: int) -> TokenLogprob:
    # Row by row: a row stays in the processor's cache, the whole batch would not.
    highest = row.max()
    log_total = float(np.log(np.exp(row - highest).sum(dtype=np.float64))) + float(highest)
    top = _top(row, num_top)
    values = [float(row[each]) - log_total for each in (token, *top)]
    return TokenLogprob(token, values[0], tuple(zip(top, values[1:], strict=True)))


def _top(row: NDArray[np.float32], count: int) -> list[int]:
    """Ids of the largest, largest first; of equal ones, lower ids come first and are kept first."""
    if count == 0:
        return []
    threshold = np.partition(row, -count)[-count] if count < len(row) else -np.inf
    ids = np.flatnonzero(row >= threshold)
    order = np.argsort(-row[ids], kind="stable")
    return [int(each) for each in ids[order[:count]]]
