"""Neighbouring slots for those that share steps."""

from hypothesis import given
from hypothesis import strategies as st

from octavo.engine.batching.slot_layout import choose_slot, gathered, is_scattered

Groups = list[str | None]

groups = st.lists(st.none() | st.sampled_from("abc"), min_size=1, max_size=12)


def moved(groups: Groups, moves: dict[int, int]) -> Groups:
    """All at once, as exchanges do."""
    after: Groups = [None if slot in moves else group for slot, group in enumerate(groups)]
    for source, target in moves.items():
        assert after[target] is None, "a slot has one sequence"
        after[target] = groups[source]
    return after


def spans(groups: Groups) -> dict[str, tuple[int, int, int]]:
    """Of each group: its first slot, its last one, and how many it has."""
    slots: dict[str, list[int]] = {}
    for slot, group in enumerate(groups):
        if group is not None:
            slots.setdefault(group, []).append(slot)
    return {group: (each[0], each[-1], len(each)) for group, each in slots.items()}


@given(groups)
def test_a_group_is_scattered_where_its_slots_are_not_neighbours(groups: Groups) -> None:
    assert is_scattered(groups) == any(last - first + 1 != number for first, last, number in spans(groups).values())


@given(groups)
def test_once_gathered_nobody_is_scattered_and_everybody_is_still_there(groups: Groups) -> None:
    moves = gathered(groups)
    assert all(0 <= slot < len(groups) for pair in moves.items() for slot in pair)
    assert all(groups[source] is not None for source in moves)
    assert len(set(moves.values())) == len(moves)
    after = moved(groups, moves)
    assert not is_scattered(after)
    assert sorted(after, key=str) == sorted(groups, key=str)


@given(groups)
def test_nobody_moves_who_need_not(groups: Groups) -> None:
    moves = gathered(groups)
    assert moves or not is_scattered(groups)
    assert not moves or is_scattered(groups)
    assert all(source != target for source, target in moves.items())


@given(st.lists(st.none() | st.just("a"), min_size=1, max_size=12))
def test_of_one_group_as_few_move_as_can(groups: Groups) -> None:
    size = sum(group is not None for group in groups)
    windows = (groups[start : start + size] for start in range(len(groups) - size + 1))
    most_inside = max(sum(group is not None for group in window) for window in windows)
    assert len(gathered(groups)) == size - most_inside


@given(groups.filter(lambda groups: None in groups), st.sampled_from("abcd"))
def test_the_slot_that_is_given_is_free_and_as_near_to_the_group_as_can_be(groups: Groups, group: str) -> None:
    slot = choose_slot(groups, group)
    assert groups[slot] is None
    free = [each for each, other in enumerate(groups) if other is None]
    own = [each for each, other in enumerate(groups) if other == group]
    taken = [each for each, other in enumerate(groups) if other is not None]
    if own:
        assert distance(slot, own) == min(distance(each, own) for each in free)
    elif taken:
        assert distance(slot, taken) == max(distance(each, taken) for each in free)
    else:
        assert slot == 0


def distance(slot: int, others: list[int]) -> int:
    return min(abs(slot - other) for other in others)


@given(st.integers(1, 12))
def test_a_group_alone_grows_from_the_first_slot_on(num_slots: int) -> None:
    groups: Groups = [None] * num_slots
    for expected in range(num_slots):
        slot = choose_slot(groups, "a")
        assert slot == expected
        groups[slot] = "a"


@given(st.integers(2, 12), st.lists(st.sampled_from("ab"), max_size=12))
def test_two_groups_grow_towards_each_other_and_are_never_scattered(num_slots: int, coming: list[str]) -> None:
    groups: Groups = [None] * num_slots
    for group in coming[:num_slots]:
        groups[choose_slot(groups, group)] = group
        assert not is_scattered(groups)
    assert groups[0] in (coming[0] if coming else None, None)
