"""Slots by number."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from engine.builders import request, sequence
from octavo.engine.batching.kv_slots import KvSlots
from octavo.engine.batching.sequence import Sequence


@given(st.integers(1, 8), st.lists(st.one_of(st.none(), st.integers(0, 7)), max_size=40))
def test_the_lowest_free_slot_is_given_out_and_none_twice(num_slots: int, acts: list[int | None]) -> None:
    slots, free, taken = KvSlots(num_slots, lambda common, _: common), set(range(num_slots)), []
    for act in acts:  # None: acquire, number: release the taken slot of that index
        assert slots.can_acquire == bool(free)
        if act is None and free:
            given = sequence()
            list(slots.acquire(given, None))
            assert given.slot == min(free)
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
