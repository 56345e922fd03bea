"""Who computes what in the next step. Pure: no model, no clock, no I/O."""

from collections import deque
from dataclasses import dataclass

from octavo.engine.batching.composer import Composer, ScheduledSequence
from octavo.engine.batching.kv_slots import KvSlots, Prefix
from octavo.engine.batching.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Admission:
    """A sequence gets a slot of its own. prefix: what it takes over, from another slot or out of this one."""

    sequence: Sequence
    slot: int
    prefix: Prefix | None


@dataclass(frozen=True, slots=True)
class ScheduledStep:
    """admissions: to be carried out first, in order. batch: what to compute then, sorted by slot."""

    admissions: list[Admission]
    batch: list[ScheduledSequence]


class Scheduler:
    """First come, first served; how those that have a slot share a step is the composer's business.

    A sequence that begins like one whose prompt is still being computed waits for it, and others may pass it.
    """

    def __init__(self, num_slots: int, composer: Composer) -> None:
        self._composer = composer
        self._slots = KvSlots(num_slots, composer.reusable)
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

    def preempt_last(self) -> int:
        """Send the last admitted sequence back to the head of the queue; its tokens are kept, its slot is not.

        It stays there until another one has left: admitted at once, it would fill the cache again, for ever. Returns
        the slot, which must be emptied.
        """
        sequence = self._running.pop()
        slot = self._release(sequence)
        self._slots.forget(slot)
        sequence.num_computed = 0
        self._waiting.appendleft(sequence)
        self._is_full = bool(self._running)
        return slot

    def forget_leftovers(self) -> list[int]:
        """Give up what is cached of sequences that have left. Returns their slots, which must be emptied."""
        leftovers = self._slots.leftovers
        for slot in leftovers:
            self._slots.forget(slot)
        return leftovers

    def schedule(self) -> ScheduledStep:
        """Admit what fits and compose a step."""
        admissions = self._admit()
        batch = self._composer.compose(self._running)
        return ScheduledStep(admissions, sorted(batch, key=lambda scheduled: scheduled.sequence.slot or 0))

    def _admit(self) -> list[Admission]:
        admissions: list[Admission] = []
        held: list[Sequence] = []
        while self._waiting and self._slots.can_acquire and not self._is_full:
            sequence = self._waiting.popleft()
            prefix = self._slots.find_prefix(sequence)
            if prefix is None or prefix.is_computed:
                admissions.append(self._give_slot(sequence, prefix))
            else:
                held.append(sequence)
        self._waiting.extendleft(reversed(held))
        return admissions

    def _give_slot(self, sequence: Sequence, prefix: Prefix | None) -> Admission:
        slot = sequence.slot = self._slots.acquire(sequence)
        sequence.reuse(prefix.length if prefix else 0)
        self._running.append(sequence)
        return Admission(sequence, slot, prefix)

    def _release(self, sequence: Sequence) -> int:
        assert sequence.slot is not None
        slot, sequence.slot = sequence.slot, None
        self._slots.release(slot)
        return slot
