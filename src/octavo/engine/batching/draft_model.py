"""A smaller model that drafts for the one that answers."""

from collections.abc import Iterator
from collections.abc import Sequence as Sequence_
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from octavo.engine.batching.drafts import NO_TOKENS
from octavo.engine.batching.radix_tree import Tokens, num_common
from octavo.engine.batching.runner import ForwardBatch, KvCacheFull, ModelRunner
from octavo.engine.batching.sequence import Sequence
from octavo.engine.batching.step_costs import StepCosts

MAX_STALL = 0.1
"""Seconds that a forward may take with tokens of prompts: who is further behind is drafted for in a later step."""
MIN_SHARED = 16
"""Tokens that copying a slot must spare."""


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """tokens: whose keys and values are in a slot. cache_key: of the request that they are of."""

    tokens: Tokens = field(default_factory=lambda: NO_TOKENS)
    cache_key: str = ""

    def num_common(self, sequence: Sequence) -> int:
        """Tokens that need not be computed again; at least one is, for its logits."""
        if self.cache_key != sequence.request.cache_key:
            return 0
        return num_common(self.tokens, sequence.tokens[:-1])


class _Draft:
    """The tokens that are drafted for a sequence, one after the other."""

    def __init__(self, sequence: Sequence, max_length: int) -> None:
        assert sequence.slot is not None
        self.sequence = sequence
        self.slot = sequence.slot
        self.tokens: list[int] = []
        self._max_length = max_length

    @property
    def is_done(self) -> bool:
        return len(self.tokens) >= self._max_length

    def tokens_from(self, position: int) -> Tokens:
        """Of the sequence and its draft."""
        drafted = self.tokens[max(position - self.sequence.num_tokens, 0) :]
        return np.concatenate([self.sequence.tokens[position:], np.array(drafted, np.int32)])


@dataclass(frozen=True, slots=True, eq=False)
class _Span:
    """Tokens to compute behind what a slot holds. is_whole: none is missing then."""

    draft: _Draft
    tokens: Tokens
    is_whole: bool


class DraftModel:
    """Drafts what it would say itself, token by token, with a forward over all sequences for each.

    Leviathan et al., "Fast inference from transformers via speculative decoding" (2023), with proposals that are
    certain. It has a slot for each of the answering model's, and as many tokens in it. It computes a sequence's tokens
    only when it drafts for it, and may then be far behind.
    """

    first_rate = 0.8

    def __init__(self, runner: ModelRunner, costs: StepCosts) -> None:
        """Owns the runner. costs: of its forwards, learned further."""
        assert runner.limits.can_share, "wrong drafts are taken back"
        self.costs = costs
        self._runner = runner
        self._held = [_Held() for _ in range(runner.limits.num_slots)]

    def propose(self, sequences: Sequence_[Sequence], max_lengths: Sequence_[int]) -> list[Tokens]:
        """None for those with which it has not caught up, and for all where its cache is full."""
        drafts = [_Draft(each, length) for each, length in zip(sequences, max_lengths, strict=True)]
        going = [draft for draft in drafts if not draft.is_done]
        for draft in going:
            self._rewind(draft.slot, draft.sequence)
        try:
            while going:
                going = [draft for draft in self._extend(going) if not draft.is_done]
        except KvCacheFull:
            pass
        return [np.array(draft.tokens, np.int32) for draft in drafts]

    def close(self) -> None:
        self._runner.close()

    def _rewind(self, slot: int, sequence: Sequence) -> None:
        """Make the slot hold a beginning of the sequence and nothing else."""
        if sequence.num_tokens - self._held[slot].num_common(sequence) > MIN_SHARED:
            self._copy_nearest(slot, sequence)
        held = self._held[slot]
        length = held.num_common(sequence)
        if length < len(held.tokens):
            self._runner.truncate(slot, length)
        self._held[slot] = _Held(held.tokens[:length], sequence.request.cache_key)

    def _copy_nearest(self, slot: int, sequence: Sequence) -> None:
        """What another slot holds of a sequence that is new in its slot: of a sample of the same prompt, or its own."""
        nearest = max(self._held, key=lambda held: held.num_common(sequence))
        if nearest.num_common(sequence) >= self._held[slot].num_common(sequence) + MIN_SHARED:
            self._runner.restore(slot, self._runner.save(self._held.index(nearest)))
            self._held[slot] = nearest

    def _extend(self, drafts: Sequence_[_Draft]) -> list[_Draft]:
        """Compute what is missing and draft a token more. Returns those for whom that was possible at once."""
        spans = sorted(self._spans(drafts), key=lambda span: span.draft.slot)
        logits = self._forward(spans)
        for span in spans:
            held = self._held[span.draft.slot]
            self._held[span.draft.slot] = _Held(np.concatenate([held.tokens, span.tokens]), held.cache_key)
        extended = [span.draft for span in spans if span.is_whole]
        for draft, token in zip(extended, logits.argmax(axis=1).tolist(), strict=True):
            draft.tokens.append(token)
        return extended

    def _spans(self, drafts: Sequence_[_Draft]) -> Iterator[_Span]:
        """Who misses least comes first."""
        limits = self._runner.limits
        spare = min(limits.max_batch_tokens, max(self.costs.max_tokens(MAX_STALL), limits.num_slots))
        missing = [(draft, draft.tokens_from(len(self._held[draft.slot].tokens))) for draft in drafts]
        for draft, tokens in sorted(missing, key=lambda each: len(each[1])):
            span = tokens[:spare]
            spare -= len(span)
            if len(span):
                yield _Span(draft, span, is_whole=len(span) == len(tokens))

    def _forward(self, spans: Sequence_[_Span]) -> NDArray[np.float32]:
        """The logits of the last token of each span that is whole."""
        batch = ForwardBatch.build(
            (span.draft.slot, len(self._held[span.draft.slot].tokens), span.tokens, int(span.is_whole))
            for span in spans
        )
        started = perf_counter()
        logits = self._runner.forward(batch)
        self.costs.observe(len(batch.tokens), perf_counter() - started, batch.num_graphs)
        return logits
