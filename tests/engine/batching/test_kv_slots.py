"""Slots by number."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine.builders import request, sequence
from octavo.engine.batching.cache_mover import CacheMover
from octavo.engine.batching.cache_moves import CacheMove, Exchange, Move
from octavo.engine.batching.kv_slots import KvSlots
from octavo.engine.batching.runner import Snapshot
from octavo.engine.batching.sequence import Sequence
from octavo.engine.batching.slot_layout import is_scattered


@given(st.integers(1, 8), st.lists(st.one_of(st.none(), st.integers(0, 7)), max_size=40))
def test_a_free_slot_is_given_out_and_none_twice(num_slots: int, acts: list[int | None]) -> None:
    slots, free, taken = KvSlots(num_slots, lambda common, _: common), set(range(num_slots)), []
    for act in acts:  # None: acquire, number: release the taken slot of that index
        assert slots.can_acquire == bool(free)
        if act is None and free:
            given = sequence()
            list(slots.acquire(given, None))
            assert given.slot in free
            free.remove(given.slot)
            taken.append(given)
        elif act is not None and act < len(taken):
            left = taken.pop(act)
            free.add(left.slot)
            slots.release(left)
            assert left.slot is None


def test_a_cache_key_of_which_nothing_is_left_is_forgotten() -> None:
    slots = KvSlots(1, lambda common, _: common, max_saved=60)
    for number in range(50):
        asked = replace(request((1,) * 30, 1), cache_key=f"user {number}")
        made = Sequence(asked, context_length=100)
        list(slots.acquire(made, slots.find_prefix(made)))
        made.advance(30)
        slots.release(made)
    assert len(slots._trees) == 3, "one in the slot, two in the host's memory"


class Cells:
    """Of a KV cache, by slot: each says which token was computed, with which adapter and under which cache key."""

    def __init__(self, num_slots: int) -> None:
        self.slots: list[list[int]] = [[] for _ in range(num_slots)]

    def save(self, slot: int) -> Snapshot:
        return Snapshot(np.array(self.slots[slot], np.int64).view(np.uint8))

    def restore(self, slot: int, snapshot: Snapshot) -> None:
        self.slots[slot] = snapshot.data.view(np.int64).tolist()

    def truncate(self, slot: int, length: int) -> None:
        assert length <= len(self.slots[slot]), "what is not there cannot be kept"
        del self.slots[slot][length:]


def marks(sequence: Sequence) -> list[int]:
    """What the cells hold of a sequence all of whose tokens are computed."""
    adapter, key = sequence.cache_key
    return [int(token) + 1_000 * ADAPTERS.index(adapter) + 1_000_000 * KEYS.index(key) for token in sequence.tokens]


ADAPTERS = ("", "a", "b")
KEYS = ("", "somebody")
STEMS = ((1, 2, 3, 4) * 10, (5, 6, 7) * 13, (1, 2, 3, 4) * 5 + (9,) * 20)
prompts = st.builds(
    lambda stem, length, tail: (*stem[:length], *tail),
    st.sampled_from(STEMS),
    st.integers(14, 39),
    st.lists(st.integers(1, 15), min_size=1, max_size=4),
)


class SlotsInUse(RuleBasedStateMachine):
    """Sequences come, are computed and leave; what the moves make of the cells is what the sequences need."""

    @initialize(num_slots=st.integers(1, 6), max_saved=st.integers(0, 200))
    def begin(self, num_slots: int, max_saved: int) -> None:
        self.slots = KvSlots(num_slots, lambda common, _: common, max_saved)
        self.cells = Cells(num_slots)
        self.mover = CacheMover(self.cells)
        self.running: list[Sequence] = []

    @precondition(lambda self: self.slots.can_acquire)
    @rule(prompt=prompts, adapter=st.sampled_from(ADAPTERS), key=st.sampled_from(KEYS))
    def come(self, prompt: tuple[int, ...], adapter: str, key: str) -> None:
        made = Sequence(replace(request(prompt, 50), adapter=adapter, cache_key=key), context_length=100)
        prefix = self.slots.find_prefix(made)
        if prefix is not None and not prefix.is_computed:
            return
        self.mover.carry_out(self.slots.acquire(made, prefix))
        made.reuse(prefix.length if prefix else 0)
        self.running.append(made)

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 5), num_tokens=st.integers(1, 40))
    def compute(self, which: int, num_tokens: int) -> None:
        each = self.running[which % len(self.running)]
        start, end = each.num_computed, min(each.num_computed + num_tokens, each.num_tokens)
        self.cells.slots[each.slot] += marks(each)[start:end]
        each.advance(end - start)
        if each.num_pending == 0:
            each.append(1)

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 5))
    def leave(self, which: int) -> None:
        self.slots.release(self.running.pop(which % len(self.running)))

    @precondition(lambda self: self.running)
    @rule()
    def preempt(self) -> None:
        self.mover.carry_out([self.slots.preempt(self.running.pop())])

    @rule()
    def forget_leftovers(self) -> None:
        self.mover.carry_out(self.slots.forget_leftovers())
        kept = {each.slot for each in self.running}
        assert all(not cells for slot, cells in enumerate(self.cells.slots) if slot not in kept)

    @rule(adapter=st.sampled_from(ADAPTERS))
    def forget_adapter(self, adapter: str) -> None:
        """As where an adapter is unloaded, with which nobody runs."""
        if any(each.request.adapter == adapter for each in self.running):
            return
        self.mover.carry_out(self.slots.forget_adapter(adapter))
        asked = Sequence(replace(request(STEMS[0], 50), adapter=adapter), context_length=100)
        assert not self.slots.can_acquire or self.slots.find_prefix(asked) is None

    @rule()
    def gather(self) -> None:
        for _ in range(2):  # at the second time it is sure that nobody will take the slots between
            self.mover.carry_out(self.slots.gather())
        assert not is_scattered(self.groups)

    @property
    def groups(self) -> list[str | None]:
        adapter_in = {each.slot: each.request.adapter for each in self.running}
        return [adapter_in.get(slot) for slot in range(len(self.cells.slots))]

    @invariant()
    def each_slot_holds_its_sequence(self) -> None:
        taken = [each.slot for each in getattr(self, "running", ())]
        assert len(set(taken)) == len(taken)
        for each in getattr(self, "running", ()):
            assert each.slot is not None
            assert self.cells.slots[each.slot] == marks(each)[: each.num_computed]


TestSlotsInUse = SlotsInUse.TestCase


def placed(*adapters: str | None) -> KvSlots:
    """With a sequence of each adapter in its slot."""
    slots = KvSlots(len(adapters), lambda common, _: common)
    placeholders = [taking_slot(slots, "") for _ in adapters]
    for slot, adapter in enumerate(adapters):
        if adapter is not None:
            slots.release(placeholders[slot])
            assert taking_slot(slots, adapter).slot == slot
    for placeholder in placeholders:
        if placeholder.slot is not None:
            slots.release(placeholder)
    return slots


def taking_slot(slots: KvSlots, adapter: str) -> Sequence:
    made = Sequence(request((1, 2), adapter=adapter), context_length=100)
    list(slots.acquire(made, None))
    return made


def gather_moves(slots: KvSlots) -> list[CacheMove]:
    assert list(slots.gather()) == [], "whoever comes next may fill the gap"
    return list(slots.gather())


def test_sequences_that_stand_in_each_other_s_place_are_exchanged() -> None:
    assert gather_moves(placed("a", "b", "a", "b")) in ([Exchange(1, 2)], [Exchange(2, 1)])


def test_a_free_slot_is_moved_into() -> None:
    assert gather_moves(placed("a", "a", None, "a")) == [Move(3, 2)]
    assert gather_moves(placed("a", "a", None, None, "b", "b")) == []


@given(st.lists(st.none() | st.sampled_from("abc"), min_size=1, max_size=8))
def test_no_slot_is_exchanged_with_itself(adapters: list[str | None]) -> None:
    moves = gather_moves(placed(*adapters))
    assert all(move.a != move.b for move in moves if isinstance(move, Exchange))
