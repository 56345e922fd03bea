"""How many drafted tokens a step is given to check: as many as pay."""

from collections.abc import Sequence as Sequence_
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from octavo.engine.batching.drafts import NO_TOKENS, Drafter
from octavo.engine.batching.radix_tree import Tokens, num_common
from octavo.engine.batching.sequence import Sequence
from octavo.engine.batching.step_costs import StepCosts

MAX_DRAFT = 16
FIRST_RATE = 0.4
"""How often a drafted token is expected to be right in a sequence that has not shown it yet."""
LEARNING_RATE = 0.2
MIN_GAIN = 1.05
"""Tokens per second that drafting must promise, as a multiple of those without."""


class Drafting(Protocol):
    def drafts(self, decoding: Sequence_[Sequence], max_tokens: int) -> list[Tokens]:
        """What to check for each of the sequences beside the token that it misses; together at most so many."""
        ...


class NoDrafting:
    def drafts(self, decoding: Sequence_[Sequence], max_tokens: int) -> list[Tokens]:
        return [NO_TOKENS] * len(decoding)


NO_DRAFTING: Drafting = NoDrafting()


@dataclass(frozen=True, slots=True)
class _Proposal:
    """tokens: what may stand behind the first `position` tokens of a sequence. rate: how often one was right so far."""

    tokens: Tokens
    position: int
    rate: float

    def judged(self, actual: Tokens) -> float:
        """The rate after what has really followed, whether the proposal was checked by a step or not."""
        num_right = num_common(self.tokens, actual)
        num_wrong = int(num_right < min(len(self.tokens), len(actual)))
        kept = (1 - LEARNING_RATE) ** num_right
        return (1 - (1 - self.rate) * kept) * (1 - LEARNING_RATE) ** num_wrong


class Speculation:
    """Drafts while the tokens they promise are worth the time that checking them takes.

    A sequence's proposals are judged by what follows also where they are not checked: a bad guesser costs nothing, and
    is heard again when it has become a good one.
    """

    def __init__(self, drafter: Drafter, costs: StepCosts) -> None:
        self._drafter = drafter
        self._costs = costs
        self._proposals: dict[str, _Proposal] = {}

    def drafts(self, decoding: Sequence_[Sequence], max_tokens: int) -> list[Tokens]:
        self._proposals = {sequence.id: self._propose(sequence) for sequence in decoding}
        proposals = list(self._proposals.values())
        lengths = self._lengths(proposals, max_tokens)
        return [proposal.tokens[:length] for proposal, length in zip(proposals, lengths, strict=True)]

    def _propose(self, sequence: Sequence) -> _Proposal:
        before = self._proposals.get(sequence.id)
        rate = before.judged(sequence.tokens[before.position :]) if before else FIRST_RATE
        tokens = self._drafter.propose(sequence.tokens, min(MAX_DRAFT, sequence.max_draft))
        return _Proposal(tokens, sequence.num_tokens, rate)

    def _lengths(self, proposals: Sequence_[_Proposal], max_tokens: int) -> NDArray[np.int64]:
        """The likeliest tokens first, as many as make the step worth most: tokens gained by seconds taken."""
        owners = np.repeat(np.arange(len(proposals)), [len(proposal.tokens) for proposal in proposals])
        chances = np.concatenate([each.rate ** np.arange(1, len(each.tokens) + 1) for each in proposals])
        likeliest = np.argsort(-chances, kind="stable")[:max_tokens]  # stable: no token before the one it follows
        gained = len(proposals) + np.cumsum(chances[likeliest])
        speeds = gained / self._costs.seconds(len(proposals) + np.arange(1, len(likeliest) + 1))
        plain = len(proposals) / self._costs.seconds(np.array([len(proposals)]))[0]
        num_worthwhile = int(speeds.argmax()) + 1 if len(speeds) and speeds.max() > MIN_GAIN * plain else 0
        return np.bincount(owners[likeliest[:num_worthwhile]], minlength=len(proposals))
