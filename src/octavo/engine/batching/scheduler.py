"""Who computes what in the next step. Pure: no model, no clock, no I/O."""

from collections import deque
from collections.abc import Iterator
from collections.abc import Sequence as Sequence_
from dataclasses import dataclass

from octavo.engine.batching.kv_slots import KvSlots
from octavo.engine.batching.sequence import Sequence

MIN_CHUNK = 128
"""Smaller chunks of a prompt cost more in graphs than they give in fairness."""


@dataclass(frozen=True, slots=True)
class ScheduledSequence:
    """The next `num_tokens` uncomputed tokens of a sequence that has a slot."""

    sequence: Sequence
    num_tokens: int

    @property
    def reaches_end(self) -> bool:
        """Whether every known token is computed afterwards, so that the next one can be sampled."""
        return self.num_tokens == self.sequence.num_pending


class Scheduler:
    """First come, first served, with a token budget per step.

    Each step lets the computed tokens of every sequence catch up with its known tokens: first those that miss one
    token (they are decoding), then longer chunks with what is left of the budget. There is no prefill or decode phase.
    """

    def __init__(self, *, num_slots: int, token_budget: int) -> None:
        """token_budget ≥ num_slots, so that decoding never has to wait."""
        assert token_budget >= num_slots
        self._budget = token_budget
        self._slots = KvSlots(num_slots)
        self._waiting: deque[Sequence] = deque()
        self._running: list[Sequence] = []  # in order of admission
        self._is_full = False  # the cache was: nothing is admitted until a running sequence has left

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    @property
    def num_running(self) -> int:
        return len(self._running)

    @property
    def has_work(self) -> bool:
        return bool(self._waiting or self._running)

    def add(self, sequence: Sequence) -> None:
        self._waiting.append(sequence)

    def remove(self, sequence: Sequence) -> None:
        """Take out a sequence that finished or was cancelled, wherever it is."""
        if sequence.slot is None:
            self._waiting.remove(sequence)
        else:
            self._running.remove(sequence)
            self._release(sequence)
            self._is_full = False

    @property
    def last_admitted(self) -> Sequence:
        return self._running[-1]

    def preempt_last(self) -> None:
        """Send the last admitted sequence back to the head of the queue; its tokens are kept, its slot is not.

        It stays there until another one has left: admitted at once, it would fill the cache again, for ever.
        """
        sequence = self._running.pop()
        self._release(sequence)
        sequence.num_computed = 0
        self._waiting.appendleft(sequence)
        self._is_full = bool(self._running)

    def schedule(self) -> list[ScheduledSequence]:
        """Admit what fits and hand out the budget; the result is sorted by slot."""
        self._admit()
        decoding = [ScheduledSequence(sequence, 1) for sequence in self._running if sequence.num_pending == 1]
        behind = [sequence for sequence in self._running if sequence.num_pending > 1]
        batch = [*decoding, *self._share(behind, self._budget - len(decoding))]
        return sorted(batch, key=lambda scheduled: scheduled.sequence.slot or 0)

    def _admit(self) -> None:
        while self._waiting and self._slots.can_acquire and not self._is_full:
            sequence = self._waiting.popleft()
            sequence.slot = self._slots.acquire()
            self._running.append(sequence)

    def _share(self, behind: Sequence_[Sequence], budget: int) -> Iterator[ScheduledSequence]:
        """Equal chunks, so that they share a graph; what short sequences leave over goes to the first admitted."""
        share = max(budget // max(len(behind), 1), MIN_CHUNK)
        wanted = [min(sequence.num_pending, share) for sequence in behind]
        spare = max(budget - sum(wanted), 0)
        for sequence, chunk in zip(behind, wanted, strict=True):
            extra = min(sequence.num_pending - chunk, spare)
            granted = min(chunk + extra, budget)
            spare -= extra
            budget -= granted
            if granted:
                yield ScheduledSequence(sequence, granted)

    def _release(self, sequence: Sequence) -> None:
        assert sequence.slot is not None
        self._slots.release(sequence.slot)
        sequence.slot = None
