"""Slots by number."""

from hypothesis import given
from hypothesis import strategies as st

from engine.builders import sequence
from octavo.engine.batching.kv_slots import KvSlots


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
