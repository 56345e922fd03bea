"""A draft model that is heard where its drafts are worth their time."""

from collections.abc import Sequence as Sequence_
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from octavo.engine.batching.draft_model import DraftModel
from octavo.engine.batching.draft_plan import Offer
from octavo.engine.batching.radix_tree import Tokens
from octavo.engine.batching.sequence import Sequence
from octavo.engine.batching.track_record import TrackRecord

PATIENCE = 32
"""Tokens of a sequence until a model that was not heard is tried again; twice as many after each such trial."""
MAX_PATIENCE = 1024


@dataclass(frozen=True, slots=True)
class _Trial:
    """position: where a sequence was last drafted for, or came. patience: tokens until the next time in any case."""

    position: int
    patience: int = PATIENCE

    def is_due(self, sequence: Sequence) -> bool:
        return sequence.num_tokens - self.position >= self.patience

    def after(self, sequence: Sequence) -> "_Trial":
        """Where it was drafted for because that had promised something, the model is worth the first patience again."""
        patience = min(2 * self.patience, MAX_PATIENCE) if self.is_due(sequence) else PATIENCE
        return _Trial(sequence.num_tokens, patience)


class CostlyDrafter:
    """Asks a draft model only for what is going to be checked.

    So what it would have said is not known, and after a while it is taken to be as good as at first.
    """

    def __init__(self, model: DraftModel) -> None:
        self._model = model
        self._record = TrackRecord(model.first_rate)
        self._trials: WeakKeyDictionary[Sequence, _Trial] = WeakKeyDictionary()

    def judge(self, decoding: Sequence_[Sequence]) -> None:
        """Learn from the tokens that have come since."""
        self._record.judge(decoding)
        for each in decoding:
            self._trials.setdefault(each, _Trial(each.num_tokens))

    def offer(self, sequence: Sequence, max_length: int) -> Offer:
        """To one of those that were judged last. It sees no images."""
        if sequence.request.images:
            return Offer(0.0, 0, takes_time=True)
        rate = self._record.rate(sequence)
        if self._trials[sequence].is_due(sequence):
            rate = max(rate, self._model.first_rate)
        return Offer(rate, max_length, takes_time=True)

    def propose(self, sequences: Sequence_[Sequence], max_lengths: Sequence_[int]) -> list[Tokens]:
        drafts = self._model.propose(sequences, max_lengths)
        for sequence, tokens in zip(sequences, drafts, strict=True):
            if len(tokens):
                self._record.note(sequence, tokens)
                self._trials[sequence] = self._trials[sequence].after(sequence)
        return drafts

    def close(self) -> None:
        self._model.close()
