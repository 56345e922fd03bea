"""How often a drafter was right, sequence by sequence."""

from collections.abc import Sequence as Sequence_
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from octavo.engine.batching.drafts import NO_TOKENS
from octavo.engine.batching.radix_tree import Tokens, num_common
from octavo.engine.batching.sequence import Sequence

LEARNING_RATE = 0.2
GENERAL_RATE = 0.1
"""How much of what a sequence shows is believed of sequences that have shown nothing yet."""


@dataclass(frozen=True, slots=True, eq=False)
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


class TrackRecord:
    """Judges what was proposed by what follows, also where it was not checked.

    first_rate: of the first sequences. Others begin with it too, or with less where it has proved too much.
    """

    def __init__(self, first_rate: float) -> None:
        self._first_rate = self._general_rate = first_rate
        self._proposals: WeakKeyDictionary[Sequence, _Proposal] = WeakKeyDictionary()

    def judge(self, decoding: Sequence_[Sequence]) -> None:
        """Learn from the tokens that have come since."""
        for each in decoding:
            self._proposals[each] = self._judged(each)

    def rate(self, sequence: Sequence) -> float:
        """The share of tokens that were right, of one of those that were judged last."""
        return self._proposals[sequence].rate

    def note(self, sequence: Sequence, tokens: Tokens) -> None:
        """The tokens are proposed to follow the sequence as it is."""
        self._proposals[sequence] = _Proposal(tokens, sequence.num_tokens, self.rate(sequence))

    def _judged(self, sequence: Sequence) -> _Proposal:
        before = self._proposals.get(sequence)
        if before is None:
            return _Proposal(NO_TOKENS, sequence.num_tokens, min(self._first_rate, self._general_rate))
        if not len(before.tokens):
            return before
        rate = before.judged(sequence.tokens[before.position :])
        self._general_rate += GENERAL_RATE * (rate - self._general_rate)
        return _Proposal(NO_TOKENS, sequence.num_tokens, rate)
