"""Who computes what in the next step. Pure: no clock, no I/O, and no model but one that a composer drafts with."""

from collections.abc import Callable, Iterator
from collections.abc import Sequence as Sequence_
from dataclasses import dataclass

from octavo.core.fair_queue import FairQueue
from octavo.engine.batching.cache_moves import CacheMove, Truncate
from octavo.engine.batching.composer import Composer, ScheduledSequence
from octavo.engine.batching.kv_slots import KvSlots, Prefix
from octavo.engine.batching.sequence import Sequence


@dataclass(frozen=True, slots=True)
class ScheduledStep:
    """moves: to be carried out first, in order. batch: what to compute then, sorted by slot."""

    moves: list[CacheMove]
    batch: list[ScheduledSequence]


class Scheduler:
    """Owners share the slots fairly by the tokens that are computed for them, and each one's sequences come in order.
    How those that have a slot share a step is the composer's business.

    A sequence that begins like one whose prompt is still being computed waits for it, and others may pass it.
    """

    def __init__(self, num_slots: int, composer: Composer, max_saved: int = 0) -> None:
        self._composer = composer
        self._slots = KvSlots(num_slots, composer.reusable, max_saved)
        self._waiting: FairQueue[Sequence] = FairQueue()
        self._running: list[Sequence] = []  # in order of admission
        self._is_full = False  # the cache was: nothing is admitted until one has left

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    @property
    def num_running(self) -> int:
        return len(self._running)

    @property
    def num_saved_prefixes(self) -> int:
        return self._slots.num_saved_prefixes

    @property
    def num_saved_tokens(self) -> int:
        return self._slots.num_saved_tokens

    @property
    def has_work(self) -> bool:
        return bool(len(self._waiting) or self._running)

    def add(self, sequence: Sequence) -> None:
        self._waiting.add(sequence, sequence.owner)

    def remove(self, sequence: Sequence) -> None:
        """Take out a sequence that finished or was cancelled, wherever it is."""
        if sequence.slot is None:
            self._waiting.remove(sequence, sequence.owner)
            self._is_full &= sequence.num_charged == 0  # else it had a slot, and may be why
        else:
            self._leave(sequence)
            self._slots.release(sequence)

    def expel(self, sequence: Sequence) -> Truncate:
        """Take out a running sequence, of which nothing is to be kept."""
        self._leave(sequence)
        return self._slots.preempt(sequence)

    @property
    def last_admitted(self) -> Sequence:
        return self._running[-1]

    def preempt_last(self) -> Truncate:
        """Send the last admitted sequence back to the head of its owner's; its tokens are kept, its slot is not.

        It stays there until another one has left: admitted at once, it would fill the cache again, for ever.
        """
        sequence = self._running.pop()
        move = self._slots.preempt(sequence)
        sequence.num_computed = 0
        self._waiting.put_back(sequence, sequence.owner)
        self._is_full = bool(self._running)
        return move

    def forget_leftovers(self) -> list[Truncate]:
        """Give up what sequences that have left still hold of the cache."""
        return self._slots.forget_leftovers()

    def forget_adapter(self, key: str) -> list[CacheMove]:
        """Give up what the cache has of an adapter with which nobody runs any more."""
        return self._slots.forget_adapter(key)

    @property
    def running(self) -> Sequence_[Sequence]:
        """Those that have a slot, in order of admission."""
        return self._running

    def schedule(self, can_compute: Callable[[Sequence], bool] = lambda _: True) -> ScheduledStep:
        """Admit what fits and compose a step of those that can go on; an empty one where none can."""
        for sequence in self._running:
            self._charge(sequence)
        moves = [*self._admit(), *self._slots.gather()]
        going = [sequence for sequence in self._running if can_compute(sequence)]
        batch = self._composer.compose(going) if going else []
        return ScheduledStep(moves, sorted(batch, key=lambda scheduled: scheduled.sequence.slot or 0))

    def _admit(self) -> Iterator[CacheMove]:
        held: list[Sequence] = []
        while len(self._waiting) and self._slots.can_acquire and not self._is_full:
            sequence = self._waiting.pop()
            prefix = self._slots.find_prefix(sequence)
            if prefix is None or prefix.is_computed:
                yield from self._give_slot(sequence, prefix)
            else:
                held.append(sequence)
        for sequence in reversed(held):
            self._waiting.put_back(sequence, sequence.owner)

    def _give_slot(self, sequence: Sequence, prefix: Prefix | None) -> Iterator[CacheMove]:
        yield from self._slots.acquire(sequence, prefix)
        sequence.reuse(prefix.length if prefix else 0)
        self._running.append(sequence)
        self._charge(sequence)

    def _leave(self, sequence: Sequence) -> None:
        self._charge(sequence)
        self._running.remove(sequence)
        self._waiting.end(sequence.owner)
        self._is_full = False

    def _charge(self, sequence: Sequence) -> None:
        """Its owner, for the tokens that have become known since: a prompt at once, so that the next slot that is given
        out is given for it."""
        self._waiting.charge(sequence.owner, sequence.num_tokens - sequence.num_charged)
        sequence.num_charged = sequence.num_tokens
