"""From logits to tokens, for a whole batch at a time. No vocabulary is sorted, unless nearly all of it is as likely."""

from collections.abc import Mapping
from collections.abc import Sequence as Sequence_
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from octavo.core.sampling import BAN_BIAS, FORCE_BIAS, SamplingParams
from octavo.engine.batching.grammars import Allowed
from octavo.engine.batching.philox import uniform
from octavo.engine.batching.rows import BLOCK, Exponentials, Ids, Row, at_least_nth, largest, plain_exponentials
from octavo.engine.batching.sequence import Sequence

NOTHING_EXCLUDED: Mapping[str, Allowed] = MappingProxyType({})

THRESHOLDS = (1e-2, 1e-3, 1e-4, 1e-6, 0.0)

MAX_ATTEMPTS = 4
"""Draws from the whole vocabulary until one is looked for among the tokens that top_p leaves."""

SHARPEST = 1e20
"""Bound of 1 / temperature: a larger factor may be infinite in 32 bits, and infinity times 0 is not a number."""

STRONGEST = 1e6
"""Bound of a repetition penalty and its reciprocal: beyond it only the numbers' range would change, to infinity."""


def sample(
    logits: NDArray[np.float32],
    sequences: Sequence_[Sequence],
    allowed: Mapping[str, Allowed] = NOTHING_EXCLUDED,
    exponentials: Exponentials = plain_exponentials,
) -> NDArray[np.int64]:
    """The next token of each sequence, shape (n,). `logits`, shape (n, vocabulary), is used as work space.

    allowed: what grammars allow next, by the ids of the sequences that have one.
    """
    for row, sequence in zip(logits, sequences, strict=True):
        params = sequence.request.sampling
        _exclude(row, sequence, allowed.get(sequence.id))
        if params.has_penalties:
            _subtract_penalties(row, sequence)
    tokens: NDArray[np.int64] = logits.argmax(axis=1)
    drawn = [i for i, sequence in enumerate(sequences) if not sequence.request.sampling.is_greedy]
    if drawn:
        seeds = np.array([sequences[i].request.sampling.seed for i in drawn], np.uint64)
        positions = np.array([sequences[i].num_generated for i in drawn], np.uint64)
        for i, u in zip(drawn, uniform(seeds, positions).tolist(), strict=True):
            tokens[i] = _draw(logits[i], int(tokens[i]), sequences[i], u, exponentials)
    return tokens


def _exclude(row: Row, sequence: Sequence, allowed: Allowed | None) -> None:
    """Biases, and what must not be drawn. Where they leave nothing of what a grammar allows, the grammar decides."""
    params, barred = sequence.request.sampling, sequence.barred_tokens
    untouched = row.copy() if allowed is not None and (params.logit_bias or barred) else row
    if params.logit_bias:
        _add_bias(row, params)
    if barred:
        row[barred] = -np.inf
    if allowed is not None:
        if untouched is not row and not np.isfinite(row[allowed]).any():
            row[:] = untouched
        row[~allowed] = -np.inf


def _draw(scores: Row, best: int, sequence: Sequence, u: float, exponentials: Exponentials) -> int:
    """u: uniform in [0, 1)."""
    params = sequence.request.sampling
    np.subtract(scores, scores[best], out=scores)
    np.multiply(scores, np.float32(min(1.0 / params.temperature, SHARPEST)), out=scores)
    if params.top_k > 0 or params.min_p > 0.0:
        ids = _candidates(scores, params)
        weights = np.exp(scores[ids])
        return _draw_from_nucleus(weights, ids, params.top_p * weights.sum(dtype=np.float64), u)
    total = exponentials(scores, 0.0)
    return _draw_by_attempts(scores, total, sequence, u) if params.top_p < 1.0 else _draw_any(scores, _sums(scores), u)


def _candidates(scores: Row, params: SamplingParams) -> Ids:
    """What top_k and then min_p leave. The largest score is 0."""
    ids = at_least_nth(scores, params.top_k) if params.top_k > 0 else _at_least(scores, params.min_p)
    if params.top_k > 0:
        ids = largest(scores[ids], ids, params.top_k)
    return ids[np.exp(scores[ids]) >= np.float32(params.min_p)]


def _at_least(scores: Row, min_p: float) -> Ids:
    """All that may have such a weight: logarithms are a little off."""
    return np.flatnonzero(scores >= np.log(min_p) - 1e-3)


def _draw_from_nucleus(weights: Row, ids: Ids, needed: float, u: float) -> int:
    """From the smallest set of largest weights that together weigh at least `needed`."""
    descending = np.cumsum(np.sort(weights)[::-1], dtype=np.float64)
    kept = largest(weights, np.arange(len(ids)), int(np.searchsorted(descending, needed)) + 1)
    weights, ids = weights[kept], ids[kept]
    return int(ids[_pick(np.cumsum(weights, dtype=np.float64), u)])


def _draw_by_attempts(weights: Row, total: float, sequence: Sequence, u: float) -> int:
    """Tokens outside the nucleus are drawn again: whether one is in it is told much faster than which ones are."""
    params, sums = sequence.request.sampling, _sums(weights)
    seed, position = np.array([params.seed], np.uint64), np.array([sequence.num_generated], np.uint64)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        token = _draw_any(weights, sums, u)
        if _is_in_nucleus(weights, token, params.top_p * total):
            return token
        u = float(uniform(seed, position, attempt)[0])
    ids = _heaviest(weights, params.top_p * total)
    return _draw_from_nucleus(weights[ids], ids, params.top_p * total, u)


def _heaviest(weights: Row, needed: float) -> Ids:
    """The tokens above some weight, few where few will do, that together weigh at least `needed`."""
    for threshold in THRESHOLDS:
        ids = np.flatnonzero(weights > threshold)
        if weights[ids].sum(dtype=np.float64) >= needed:
            break
    return ids


def _is_in_nucleus(weights: Row, token: int, needed: float) -> bool:
    """Whether the tokens before it weigh less than what is needed: heavier ones, and equal ones of lower ids."""
    ids = np.flatnonzero(weights >= weights[token])
    values = weights[ids]
    return bool(values[(values > weights[token]) | (ids < token)].sum(dtype=np.float64) < needed)


def _sums(weights: Row) -> NDArray[np.float64]:
    """Of all up to the end of each block, because adding up a vocabulary one by one takes longer than all the rest."""
    return np.cumsum(np.add.reduceat(weights, np.arange(0, len(weights), BLOCK)), dtype=np.float64)


def _draw_any(weights: Row, sums: NDArray[np.float64], u: float) -> int:
    block = _pick(sums, u)
    before = float(sums[block - 1]) if block else 0.0
    share = (u * float(sums[-1]) - before) / (float(sums[block]) - before)
    start = block * BLOCK
    return start + _pick(np.cumsum(weights[start : start + BLOCK], dtype=np.float64), min(max(share, 0.0), 1.0))


def _pick(cumulative: NDArray[np.float64], u: float) -> int:
    """Index whose share of the cumulative weights holds u ∈ [0, 1]; never one that weighs nothing."""
    total = cumulative[-1]
    return int(np.searchsorted(cumulative, min(u * total, np.nextafter(total, 0.0)), side="right"))


def _add_bias(scores: Row, params: SamplingParams) -> None:
    ids = np.array([token for token, _ in params.logit_bias])
    bias = np.array([value for _, value in params.logit_bias], np.float32)
    scores[ids] += bias
    scores[ids[bias <= BAN_BIAS]] = -np.inf
    forced = ids[bias >= FORCE_BIAS]
    if len(forced):
        others = np.ones(len(scores), np.bool_)
        others[forced] = False
        scores[others] = -np.inf


def _subtract_penalties(scores: Row, sequence: Sequence) -> None:
    params = sequence.request.sampling
    if params.repetition_penalty != 1.0:
        seen = np.unique(sequence.tokens[sequence.tokens >= 0])  # where images are, no token is
        values = scores[seen]
        penalty = np.float32(min(max(params.repetition_penalty, 1 / STRONGEST), STRONGEST))
        scores[seen] = np.where(values > 0, values / penalty, values * penalty)
    generated, counts = np.unique(sequence.output, return_counts=True)
    scores[generated] -= (params.frequency_penalty * counts + params.presence_penalty).astype(np.float32)
