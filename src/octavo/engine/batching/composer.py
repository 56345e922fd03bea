"""How a step is made up of the sequences that have a slot."""

from collections.abc import Iterator
from collections.abc import Sequence as Sequence_
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

from octavo.engine.batching.drafts import NO_TOKENS
from octavo.engine.batching.radix_tree import Tokens
from octavo.engine.batching.runner import LONE_CHUNK, ForwardBatch, RunnerLimits
from octavo.engine.batching.sequence import Sequence
from octavo.engine.batching.speculation import NO_DRAFTING, Drafting
from octavo.engine.batching.step_costs import FREE_STEPS, StepCosts
from octavo.engine.batching.turns import Turns, longest_waiting

MIN_CHUNK = 128
"""Smaller chunks of a prompt cost more in graphs than they give in fairness."""
MAX_STALL = 0.25
"""Seconds that a step may take with chunks of prompts beside others' answers."""


@dataclass(frozen=True, slots=True, eq=False)
class ScheduledSequence:
    """The next `num_tokens` pending tokens of a sequence that has a slot.

    draft: tokens to be checked behind them; only where none stay pending.
    """

    sequence: Sequence
    num_tokens: int
    draft: Tokens = field(default_factory=lambda: NO_TOKENS)

    @property
    def num_logits(self) -> int:
        return self.sequence.num_logits(self.num_tokens) + len(self.draft)


class Composer(Protocol):
    """Composes steps, and knows what that means for sharing."""

    def compose(self, running: Sequence_[Sequence]) -> list[ScheduledSequence]:
        """The next step, at least one token for somebody; all with one adapter, and text or a part of one image.

        running: in order of admission, not empty.
        """
        ...

    def observe(self, batch: ForwardBatch, seconds: float) -> None:
        """Learn how long the model took for a step."""
        ...

    def reusable(self, num_common: int, num_prompt_tokens: int) -> int:
        """How many of the tokens that a sequence has in common with another may be taken over from it.

        num_prompt_tokens: the other one's.
        """
        ...

    def close(self) -> None:
        """Free what drafts beside the model."""
        ...


class MixedSteps:
    """As many of the sequences that may share a step as fit its budgets of tokens and of rows of logits.

    Each step lets the computed tokens of every sequence catch up with its known tokens: first those that miss one token
    (they are decoding), then longer chunks with what is left of the budget. There is no prefill or decode phase.

    costs: bound the chunks beside which others decode. drafting: guesses to be checked in steps where all decode.
    """

    def __init__(self, limits: RunnerLimits, costs: StepCosts = FREE_STEPS, drafting: Drafting = NO_DRAFTING) -> None:
        assert limits.max_batch_tokens >= limits.num_slots, "decoding never has to wait"
        assert limits.max_logits >= limits.num_slots
        self._limits = limits
        self._costs = costs
        self._drafting = drafting
        self._turns = Turns()

    def compose(self, running: Sequence_[Sequence]) -> list[ScheduledSequence]:
        turn = self._turns.next(running)
        stall = MAX_STALL / max(turn.num_others, 1) if any(map(_is_decoding, running)) else inf
        if turn.is_at_image:
            return [self._look(turn.sequences[0], stall)]
        decoding = [sequence for sequence in turn.sequences if _is_decoding(sequence)]
        behind = [sequence for sequence in turn.sequences if not _is_decoding(sequence)]
        spare_rows = self._limits.max_logits - len(turn.sequences)
        if not behind:
            return self._decode(decoding, spare_rows)
        chunks = self._share(behind, self._budget(len(decoding), stall), spare_rows)
        return [*(ScheduledSequence(sequence, 1) for sequence in decoding), *chunks]

    def observe(self, batch: ForwardBatch, seconds: float) -> None:
        self._costs.observe(len(batch.tokens), seconds, batch.num_graphs)

    def reusable(self, num_common: int, num_prompt_tokens: int) -> int:
        return num_common if self._limits.can_share else 0

    def close(self) -> None:
        self._drafting.close()

    def _look(self, sequence: Sequence, stall: float) -> ScheduledSequence:
        budget = self._limits.max_batch_tokens if sequence.sees_whole else self._budget(0, stall)
        return ScheduledSequence(sequence, min(sequence.num_computable, budget))

    def _decode(self, decoding: Sequence_[Sequence], spare_rows: int) -> list[ScheduledSequence]:
        """With what is drafted, because there is no prompt that waits for its tokens to be computed."""
        spare = min(self._limits.max_batch_tokens - len(decoding), spare_rows)
        drafts = self._drafting.drafts(decoding, spare if self._limits.can_share else 0)
        return [ScheduledSequence(sequence, 1, draft) for sequence, draft in zip(decoding, drafts, strict=True)]

    def _budget(self, num_decoding: int, stall: float) -> int:
        """Tokens of prompts. stall: seconds that those may stand still whose answers are being written."""
        most = self._limits.max_batch_tokens
        if stall < inf:
            most = min(most, max(self._costs.max_tokens(stall), MIN_CHUNK + num_decoding))
        return most - num_decoding

    def _share(self, behind: Sequence_[Sequence], budget: int, spare_rows: int) -> Iterator[ScheduledSequence]:
        """Equal chunks, or all that is left of a prompt: each other length is a graph more, so there are no scraps.

        What they leave over goes to the first one that is not done.
        spare_rows: of logits, beside the one that everybody may have.
        """
        share = budget // max(min(len(behind), budget // MIN_CHUNK), 1)
        fitting: list[tuple[Sequence, int]] = []
        for sequence in behind:
            chunk = min(sequence.num_computable, share)
            if chunk <= budget:
                budget -= chunk
                fitting.append((sequence, chunk))
        for sequence, chunk in fitting:
            wanted = min(sequence.num_computable, chunk + budget)
            granted = min(wanted, sequence.max_span(1 + spare_rows))
            budget -= wanted - chunk
            if granted:
                spare_rows -= max(sequence.num_logits(granted) - 1, 0)
                yield ScheduledSequence(sequence, granted)


def _is_decoding(sequence: Sequence) -> bool:
    return sequence.num_pending == 1


class LoneSteps:
    """One sequence a step, in turns, cut at fixed places.

    What a sequence's numbers are then depends on nothing but its own tokens: every token of it is computed in a batch
    of the same shape and at the same place in it, whatever else runs and whatever was found computed. Chunks of a
    prompt end at multiples of `_chunk`, generated tokens are computed one by one, and only whole chunks of prompts are
    shared.
    """

    def __init__(self, limits: RunnerLimits) -> None:
        self._chunk = min(LONE_CHUNK, limits.max_logits, limits.max_batch_tokens)
        self._max_batch_tokens = limits.max_batch_tokens
        self._can_share = limits.can_share
        self._turn = 0

    def observe(self, batch: ForwardBatch, seconds: float) -> None:
        """What steps are made of depends on no clock here."""

    def compose(self, running: Sequence_[Sequence]) -> list[ScheduledSequence]:
        self._turn += 1
        sequence = longest_waiting(running, self._turn)
        return [ScheduledSequence(sequence, self._span(sequence))]

    def reusable(self, num_common: int, num_prompt_tokens: int) -> int:
        common = min(num_common, num_prompt_tokens) if self._can_share else 0
        return common - common % self._chunk

    def close(self) -> None:
        """Nothing is drafted: what a step is made of would depend on it."""

    def _span(self, sequence: Sequence) -> int:
        start, end = sequence.num_computed, sequence.num_prompt_tokens
        if start >= end:
            return 1
        chunk = self._max_batch_tokens if sequence.sees_whole else self._chunk - start % self._chunk
        return min(chunk, end - start, sequence.num_computable)
