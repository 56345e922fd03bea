"""From logits to what the model itself thought of tokens."""

from collections.abc import Sequence as Sequence_
from math import log

import numpy as np
from numpy.typing import NDArray

from octavo.core.output import TokenLogprob
from octavo.engine.batching.rows import Exponentials, Row, at_least_nth, plain_exponentials


def score(
    logits: NDArray[np.float32], tokens: Sequence_[int], num_top: int, exponentials: Exponentials = plain_exponentials
) -> tuple[TokenLogprob, ...]:
    """The log-probability of one token for each row of logits, shape (n, vocabulary), and the num_top best of the row.

    Natural logarithms of the softmax: x - max - log Σ exp(x - max).
    """
    return tuple(_score(row, token, num_top, exponentials) for row, token in zip(logits, tokens, strict=True))


def _score(row: Row, token: int, num_top: int, exponentials: Exponentials) -> TokenLogprob:
    highest = float(row.max())
    log_total = log(exponentials(row.copy(), highest)) + highest
    top = _top(row, num_top)
    values = [float(row[each]) - log_total for each in (token, *top)]
    return TokenLogprob(token, values[0], tuple(zip(top, values[1:], strict=True)))


def _top(row: Row, count: int) -> list[int]:
    """Ids of the largest, largest first; of equal ones, lower ids come first and are kept first."""
    if count == 0:
        return []
    ids = at_least_nth(row, count)
    order = np.argsort(-row[ids], kind="stable")
    return [int(each) for each in ids[order[:count]]]
