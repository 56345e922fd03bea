"""From logits to tokens, for a whole batch at a time; no vocabulary is ever sorted."""

from collections.abc import Sequence as Sequence_

import numpy as np
from numpy.typing import NDArray

from octavo.core.sampling import BAN_BIAS, FORCE_BIAS, SamplingParams
from octavo.engine.batching.philox import uniform
from octavo.engine.batching.sequence import Sequence

Row = NDArray[np.float32]
"""Scores or weights of one sequence, shape (vocabulary,)."""

SHARPEST = 1e20
"""Bound of 1 / temperature: a larger factor may be infinite in 32 bits, and infinity times 0 is not a number."""

STRONGEST = 1e6
"""Bound of a repetition penalty and its reciprocal: beyond it only the numbers' range would change, to infinity."""


def sample(logits: NDArray[np.float32], sequences: Sequence_[Sequence]) -> NDArray[np.int64]:
    """The next token of each sequence, shape (n,). `logits`, shape (n, vocabulary), is used as work space."""
    for row, sequence in zip(logits, sequences, strict=True):
        params = sequence.request.sampling
        if params.logit_bias:
            _add_bias(row, params)
        if params.has_penalties:
            _subtract_penalties(row, sequence)
    tokens: NDArray[np.int64] = logits.argmax(axis=1)
    drawn = [i for i, sequence in enumerate(sequences) if not sequence.request.sampling.is_greedy]
    if drawn:
        tokens[drawn] = _draw(logits, tokens, drawn, [sequences[i] for i in drawn])
    return tokens


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
    cumulative = np.cumsum(weights, dtype=np.float64)
    return _pick(cumulative, u)


def _draw_truncated(weights: Row, params: SamplingParams, u: float) -> int:
    candidates = _candidates(weights, params)
    by_weight = candidates[np.argsort(-weights[candidates], kind="stable")]
    if params.top_k:
        by_weight = by_weight[: params.top_k]
    kept = weights[by_weight]
    if params.min_p:
        kept = kept[kept >= np.float32(params.min_p)]  # the largest weight is 1
    cumulative = np.cumsum(kept, dtype=np.float64)
    if params.top_p < 1.0:
        # Of what top_k and min_p left, all of it candidates; where they cut nothing, of the whole distribution.
        total = cumulative[-1] if _cuts(params, len(weights)) else weights.sum(dtype=np.float64)
        crossing = int(np.searchsorted(cumulative, params.top_p * total))
        cumulative = cumulative[: crossing + 1]
    return int(by_weight[_pick(cumulative, u)])


def _cuts(params: SamplingParams, vocabulary_size: int) -> bool:
    """Whether top_k or min_p chooses the candidates."""
    return 0 < params.top_k < vocabulary_size or params.min_p > 0.0


def _candidates(weights: Row, params: SamplingParams) -> NDArray[np.int64]:
    """Ids of a set that surely holds what truncation keeps, in ascending order."""
    if 0 < params.top_k < len(weights):
        threshold = np.partition(weights, -params.top_k)[-params.top_k]
        return np.flatnonzero(weights >= threshold)
    if params.min_p > 0.0:
        return np.flatnonzero(weights >= np.float32(params.min_p))
    # Tokens up to this weight have together at most the share 1 - top_p, so the nucleus is among the others.
    tail = (1.0 - params.top_p) * float(weights.sum(dtype=np.float64)) / len(weights)
    return np.flatnonzero(weights > np.float32(min(tail, 0.5)))


def _pick(cumulative: NDArray[np.float64], u: float) -> int:
    """Index whose share of the cumulative weights holds u ∈ [0, 1)."""
    index = int(np.searchsorted(cumulative, u * cumulative[-1], side="right"))
    return min(index, len(cumulative) - 1)


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
