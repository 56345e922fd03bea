"""Which sequence has which place in the KV cache, and what is still known of those before it."""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice

from octavo.engine.batching.cache_moves import CacheMove, Copy, Discard, Exchange, Move, Restore, Save, Truncate
from octavo.engine.batching.radix_tree import RadixTree, Tokens
from octavo.engine.batching.sequence import Sequence
from octavo.engine.batching.slot_layout import choose_slot, gathered, is_scattered

MIN_SHARED = 16
"""Copying or saving a prefix takes as long as computing a few tokens; a shorter one is computed again."""

MAX_LOOKS = 64
"""Entries that are compared with a new sequence, those that have most in common with it first."""

Reusable = Callable[[int, int], int]
"""From the number of tokens that a sequence has in common with another, and that other one's number of prompt tokens,
to how many of them may be taken over."""


class CacheEntry:
    """Tokens whose keys and values are in a slot, in a snapshot, or in both.

    tokens: of a running sequence those that it had when it came, which it has computed or soon will.
    runs: the sequence in whose hands they are; None once it has left.
    """

    def __init__(self, sequence: Sequence, slot: int) -> None:
        self.cache_key = sequence.cache_key
        self.num_prompt_tokens = sequence.num_prompt_tokens
        self.tokens: Tokens = sequence.tokens.copy()
        self.runs: Sequence | None = sequence
        self.slot: int | None = slot
        self.snapshot: int | None = None

    @property
    def adapter(self) -> str:
        return self.cache_key[0]

    @property
    def num_computed(self) -> int:
        return len(self.tokens) if self.runs is None else self.runs.num_computed


@dataclass(frozen=True, slots=True)
class Prefix:
    """The first `length` tokens of an entry. is_computed: now, not only when its sequence gets there."""

    entry: CacheEntry
    length: int

    @property
    def is_computed(self) -> bool:
        return self.length <= self.entry.num_computed

    def rank(self, slot: int) -> tuple[int, bool, bool, bool]:
        """Long, there now, in the very slot that would be given, in any slot."""
        return self.length, self.is_computed, self.entry.slot == slot, self.entry.slot is not None


class KvSlots:
    """Slots by number.

    llama.cpp computes neighbouring slots in one graph, so those that share steps, having one adapter, are kept
    together; a sequence without others like it begins far from the rest, where both can grow. A slot that was released
    holds its sequence's computed tokens until it is given out again, and then they are saved in the host's memory as
    far as nobody else holds them: together this is the prefix cache. Of what is saved, what was used last is kept
    longest; where nothing may be saved, a slot's tokens last until it is taken.

    reusable: see there. max_saved: tokens of all snapshots together.
    """

    def __init__(self, num_slots: int, reusable: Reusable, max_saved: int = 0) -> None:
        self._entries: list[CacheEntry | None] = [None] * num_slots
        self._taken = [False] * num_slots
        self._trees: defaultdict[tuple[str, str], RadixTree[CacheEntry]] = defaultdict(RadixTree)
        self._reusable = reusable
        self._max_saved = max_saved
        self._saved: OrderedDict[int, CacheEntry] = OrderedDict()  # by snapshot, what was used last at the end
        self._num_saved = 0
        self._snapshots = count()
        self._was_scattered = False

    @property
    def num_saved_prefixes(self) -> int:
        return len(self._saved)

    @property
    def num_saved_tokens(self) -> int:
        return self._num_saved

    @property
    def can_acquire(self) -> bool:
        return not all(self._taken)

    def find_prefix(self, sequence: Sequence) -> Prefix | None:
        """The longest beginning of the sequence that need not be computed again; of equal ones, the nearest."""
        tree, best, slot = self._trees.get(sequence.cache_key), None, self._slot_for(sequence)
        for num_common, entry in islice(tree.matches(sequence.tokens), MAX_LOOKS) if tree else ():
            if num_common < max(MIN_SHARED, best.length if best else 0):
                break
            length = self._reusable(min(num_common, sequence.num_reusable), entry.num_prompt_tokens)
            prefix = Prefix(entry, sequence.without_torn_images(length))
            if best is None or prefix.rank(slot) > best.rank(slot):
                best = prefix
        return best if best is not None and best.length >= MIN_SHARED else None

    def acquire(self, sequence: Sequence, prefix: Prefix | None) -> Iterator[CacheMove]:
        """Give the sequence a slot that holds its prefix, which is computed. The moves must all be carried out."""
        slot = sequence.slot = self._slot_for(sequence)
        if prefix is not None and prefix.entry.snapshot is not None:
            self._saved.move_to_end(prefix.entry.snapshot)
        entry = self._enter(sequence, slot)
        yield from self._vacate(slot, keeps=prefix.entry if prefix else None)
        yield from self._bring(prefix, slot)
        yield from self._discard_excess()
        self._entries[slot], self._taken[slot] = entry, True

    def release(self, sequence: Sequence) -> None:
        """Take the slot back; what the sequence has computed stays in it."""
        slot = self._leave(sequence)
        entry = self._entries[slot]
        assert entry is not None
        self._forget(entry)
        entry.tokens, entry.runs = sequence.tokens[: sequence.num_computed].copy(), None
        self._trees[entry.cache_key].insert(entry.tokens, entry)

    def preempt(self, sequence: Sequence) -> Truncate:
        """Take the slot back and what is in it."""
        slot = self._leave(sequence)
        self._drop_from(slot)
        return Truncate(slot, 0)

    def forget_leftovers(self) -> list[Truncate]:
        """Give up what sequences have left in their slots; snapshots stay."""
        return self._empty(lambda _: True)

    def forget_adapter(self, key: str) -> list[CacheMove]:
        """Give up all that was computed with an adapter, with which nobody runs any more."""
        snapshots = [snapshot for snapshot, entry in self._saved.items() if entry.adapter == key]
        return [*self._empty(lambda entry: entry.adapter == key), *map(self._discard, snapshots)]

    def _empty(self, is_given_up: Callable[[CacheEntry], bool]) -> list[Truncate]:
        """Of slots that nobody has."""
        slots = [
            slot
            for slot, entry in enumerate(self._entries)
            if entry is not None and not self._taken[slot] and is_given_up(entry)
        ]
        for slot in slots:
            self._drop_from(slot)
        return [Truncate(slot, 0) for slot in slots]

    def gather(self) -> Iterator[CacheMove]:
        """Bring those together that have been scattered for a step, with nobody to take the slots between them."""
        is_scattered_now = is_scattered(self._groups)
        if is_scattered_now and self._was_scattered:
            yield from self._rearrange(gathered(self._groups))
            is_scattered_now = False
        self._was_scattered = is_scattered_now

    @property
    def _groups(self) -> list[str | None]:
        """The adapter with which the sequence in each slot is computed."""
        return [entry.adapter if entry and entry.runs else None for entry in self._entries]

    def _slot_for(self, sequence: Sequence) -> int:
        return choose_slot(self._groups, sequence.request.adapter)

    def _enter(self, sequence: Sequence, slot: int) -> CacheEntry:
        entry = CacheEntry(sequence, slot)
        self._trees[entry.cache_key].insert(entry.tokens, entry)
        return entry

    def _leave(self, sequence: Sequence) -> int:
        assert sequence.slot is not None
        slot, sequence.slot = sequence.slot, None
        self._taken[slot] = False
        return slot

    def _vacate(self, slot: int, keeps: CacheEntry | None) -> Iterator[CacheMove]:
        """Save what is left in a slot if only it knows so much. keeps: whose tokens stay there a moment longer."""
        entry = self._entries[slot]
        self._entries[slot] = None
        if entry is None:
            return
        if entry.snapshot is None and len(entry.tokens) <= self._max_saved and self._is_unique(entry):
            yield self._save(entry, slot)
        if entry is not keeps:
            entry.slot = None
            self._drop_if_nowhere(entry)

    def _bring(self, prefix: Prefix | None, slot: int) -> Iterator[CacheMove]:
        """Make the slot hold the prefix, where it may still be."""
        if prefix is None:
            yield Truncate(slot, 0)
        elif prefix.entry.slot == slot:
            prefix.entry.slot = None
            self._drop_if_nowhere(prefix.entry)
            yield Truncate(slot, prefix.length)
        elif prefix.entry.slot is not None:
            yield Copy(prefix.entry.slot, slot, prefix.length)
        else:
            yield from self._restore(prefix.entry, slot, prefix.length)

    def _restore(self, entry: CacheEntry, slot: int, length: int) -> Iterator[CacheMove]:
        assert entry.snapshot is not None
        yield Restore(entry.snapshot, slot, length)
        if not self._is_unique(entry):  # the sequence goes on where it ended, and will be saved in its place
            yield self._discard(entry.snapshot)

    def _is_unique(self, entry: CacheEntry) -> bool:
        """Whether many of its tokens would have to be computed again without it."""
        matches = self._trees[entry.cache_key].matches(entry.tokens)
        elsewhere = next((num_common for num_common, other in matches if other is not entry), 0)
        return len(entry.tokens) - elsewhere >= MIN_SHARED

    def _save(self, entry: CacheEntry, slot: int) -> CacheMove:
        entry.snapshot = next(self._snapshots)
        self._saved[entry.snapshot] = entry
        self._num_saved += len(entry.tokens)
        return Save(slot, entry.snapshot)

    def _discard(self, snapshot: int) -> Discard:
        entry = self._saved.pop(snapshot)
        self._num_saved -= len(entry.tokens)
        entry.snapshot = None
        self._drop_if_nowhere(entry)
        return Discard(snapshot)

    def _discard_excess(self) -> Iterator[CacheMove]:
        while self._num_saved > self._max_saved:
            yield self._discard(next(iter(self._saved)))

    def _drop_from(self, slot: int) -> None:
        entry = self._entries[slot]
        assert entry is not None
        self._entries[slot] = entry.slot = None
        self._drop_if_nowhere(entry)

    def _drop_if_nowhere(self, entry: CacheEntry) -> None:
        if entry.slot is None and entry.snapshot is None:
            self._forget(entry)

    def _forget(self, entry: CacheEntry) -> None:
        tree = self._trees[entry.cache_key]
        tree.remove(entry.tokens, entry)
        if tree.is_empty:  # keys may come from clients, without end
            del self._trees[entry.cache_key]

    def _rearrange(self, targets: dict[int, int]) -> Iterator[CacheMove]:
        """targets: new slots by the old ones."""
        while targets:
            source, target = targets.popitem()
            if self._taken[target]:
                yield from self._exchange(source, target)
                if (onward := targets.pop(target, source)) != source:
                    targets[source] = onward
            else:
                yield from self._move(source, target)

    def _exchange(self, a: int, b: int) -> Iterator[CacheMove]:
        yield Exchange(a, b)
        first, second = self._entries[a], self._entries[b]
        self._place(first, b)
        self._place(second, a)

    def _move(self, source: int, target: int) -> Iterator[CacheMove]:
        yield from self._vacate(target, keeps=None)
        yield from self._discard_excess()
        yield Move(source, target)
        self._place(self._entries[source], target)
        self._entries[source], self._taken[source] = None, False

    def _place(self, entry: CacheEntry | None, slot: int) -> None:
        """A sequence is in this slot now."""
        assert entry is not None
        assert entry.runs is not None
        self._entries[slot], self._taken[slot] = entry, True
        entry.slot = entry.runs.slot = slot
