"""From logits to tokens, for a whole batch at a time; no vocabulary is ever sorted."""

from collections.abc import Mapping
from collections.abc import Sequence as Sequence_
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from octavo.core.sampling import BAN_BIAS, FORCE_BIAS, SamplingParams
from octavo.engine.batching.grammars import Allowed
from octavo.engine.batching.philox import uniform
from octavo.engine.batching.sequence import Sequence

Row = NDArray[np.float32]
"""Scores or weights of one sequence, shape (vocabulary,)."""

Ids = NDArray[np.int64]
"""Token ids, ascending, shape (n,)."""

NOTHING_EXCLUDED: Mapping[str, Allowed] = MappingProxyType({})

BLOCK = 256
THRESHOLDS = (1e-2, 1e-3, 1e-4, 1e-6, 0.0)

SHARPEST = 1e20
"""Bound of 1 / temperature: a larger factor may be infinite in 32 bits, and infinity times 0 is not a number."""

STRONGEST = 1e6
"""Bound of a repetition penalty and its reciprocal: beyond it only the numbers' range would change, to infinity."""


def sample(
    logits: NDArray[np.float32], sequences: Sequence_[Sequence], allowed: Mapping[str, Allowed] = NOTHING_EXCLUDED
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
        tokens[drawn] = _draw(logits, tokens, drawn, [sequences[i] for i in drawn])
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


def _draw(
    logits: NDArray[np.float32], best: NDArray[np.int64], rows: Sequence_[int], sequences: Sequence_[Sequence]
) -> list[int]:
    seeds = np.array([sequence.request.sampling.seed for sequence in sequences], np.uint64)
    positions = np.array([sequence.num_generated for sequence in sequences], np.uint64)
    tokens = []
    # Row by row: a row stays in the processor's cache through all passes, the whole batch would not.
    for row, sequence, u in zip(rows, sequences, uniform(seeds, positions), strict=True):
        params = sequence.request.sampling
        weights = logits[row]
        weights -= weights[best[row]]
        weights *= np.float32(min(1.0 / params.temperature, SHARPEST))
        np.exp(weights, out=weights)
        tokens.append(_draw_truncated(weights, params, u) if _truncates(params) else _draw_any(weights, u))
    return tokens


def _truncates(params: SamplingParams) -> bool:
    return params.top_k > 0 or params.min_p > 0.0 or params.top_p < 1.0


def _draw_any(weights: Row, u: float) -> int:
    """By blocks, because adding up a whole vocabulary one by one takes longer than all the rest."""
    starts = np.arange(0, len(weights), BLOCK)
    sums = np.cumsum(np.add.reduceat(weights, starts), dtype=np.float64)
    block = _pick(sums, u)
    before = float(sums[block - 1]) if block else 0.0
    share = (u * float(sums[-1]) - before) / (float(sums[block]) - before)
    start = int(starts[block])
    return start + _pick(np.cumsum(weights[start : start + BLOCK], dtype=np.float64), min(max(share, 0.0), 1.0))


def _draw_truncated(weights: Row, params: SamplingParams, u: float) -> int:
    kept = _kept(weights, params)
    return int(kept[_pick(np.cumsum(weights[kept], dtype=np.float64), u)])


def _kept(weights: Row, params: SamplingParams) -> Ids:
    """What truncation leaves. The largest weight is 1; of equal weights, those of lower ids are kept first."""
    if 0 < params.top_k < len(weights):
        ids = _largest(weights, np.flatnonzero(weights >= _nth_largest(weights, params.top_k)), params.top_k)
        ids = ids[weights[ids] >= np.float32(params.min_p)]
        total = weights[ids].sum(dtype=np.float64)
    elif params.min_p > 0.0:
        ids = np.flatnonzero(weights >= np.float32(params.min_p))
        total = weights[ids].sum(dtype=np.float64)
    else:
        total = weights.sum(dtype=np.float64)
        ids = _heaviest(weights, params.top_p * total)
    return ids if params.top_p == 1.0 else _nucleus(weights, ids, params.top_p * total)


def _heaviest(weights: Row, needed: float) -> Ids:
    """The tokens above some weight, few where few will do, that together weigh at least `needed`."""
    for threshold in THRESHOLDS:
        ids = np.flatnonzero(weights > threshold)
        if weights[ids].sum(dtype=np.float64) >= needed:
            break
    return ids


def _nucleus(weights: Row, ids: Ids, needed: float) -> Ids:
    """The smallest set of largest weights that together weigh at least `needed`."""
    descending = np.sort(weights[ids])[::-1]
    crossing = int(np.searchsorted(np.cumsum(descending, dtype=np.float64), needed))
    return _largest(weights, ids, crossing + 1)


def _largest(weights: Row, ids: Ids, count: int) -> Ids:
    if count >= len(ids):
        return ids
    values = weights[ids]
    threshold = _nth_largest(values, count)
    is_kept = values > threshold
    is_kept[np.flatnonzero(values == threshold)[: count - np.count_nonzero(is_kept)]] = True
    return ids[is_kept]


def _nth_largest(values: Row, n: int) -> np.float32:
    return np.partition(values, -n)[-n]  # type: ignore[no-any-return]  # numpy types a scalar of it as Any


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
        seen = np.unique(sequence.tokens)
        values = scores[seen]
        penalty = np.float32(min(max(params.repetition_penalty, 1 / STRONGEST), STRONGEST))
        scores[seen] = np.where(values > 0, values / penalty, values * penalty)
    generated, counts = np.unique(sequence.output, return_counts=True)
    scores[generated] -= (params.frequency_penalty * counts + params.presence_penalty).astype(np.float32)
