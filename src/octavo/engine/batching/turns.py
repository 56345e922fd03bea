"""Who may share a step."""

from collections.abc import Sequence as Sequence_
from dataclasses import dataclass

from octavo.engine.batching.sequence import Sequence

_Kind = tuple[str, bool]
"""An adapter's key, and whether it is images that are seen with it."""


@dataclass(frozen=True, slots=True)
class Turn:
    """sequences: of a step, all at tokens of text, or one that is at an image. num_others: kinds of steps that wait."""

    sequences: Sequence_[Sequence]
    num_others: int

    @property
    def is_at_image(self) -> bool:
        return self.sequences[0].span_ahead is not None


class Turns:
    """Texts under one adapter share a step, and a part of an image has one for itself: the model has one set of
    weights at a time, and takes tokens or embeddings. Kinds of steps take turns, and among images sequences do."""

    def __init__(self) -> None:
        self._step = 0
        self._last: dict[_Kind, int] = {}

    def next(self, running: Sequence_[Sequence]) -> Turn:
        """running: not empty. The kind whose last step, or whose coming, is longest ago: nobody is passed for ever."""
        kinds: dict[_Kind, list[Sequence]] = {}
        for sequence in running:
            kinds.setdefault(_kind(sequence), []).append(sequence)
        self._last = {kind: self._last.get(kind, self._step) for kind in kinds}
        self._step += 1
        kind = min(kinds, key=self._last.__getitem__)
        self._last[kind] = self._step
        sequences = kinds[kind]
        return Turn([longest_waiting(sequences, self._step)] if kind[1] else sequences, len(kinds) - 1)


def longest_waiting(sequences: Sequence_[Sequence], step: int) -> Sequence:
    """The one whose last turn, or whose coming, is longest ago; it has this step, numbered from 1 on."""
    for sequence in sequences:
        sequence.last_turn = sequence.last_turn or step - 1  # who comes does not pass those who wait
    longest = min(sequences, key=lambda sequence: sequence.last_turn)
    longest.last_turn = step
    return longest


def _kind(sequence: Sequence) -> _Kind:
    return sequence.request.adapter, sequence.span_ahead is not None
