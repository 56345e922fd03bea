"""Which work has ended the engine's process."""

from hypothesis import given
from hypothesis import strategies as st

from octavo.engine.worker.suspects import MAX_REMEMBERED, MEMORY, Suspects


def accused(*digests: str, now: float = 0.0) -> Suspects:
    suspects = Suspects()
    assert not suspects.accuse(set(digests), now)
    return suspects


def test_what_was_computed_at_a_death_is_suspect_and_nothing_else() -> None:
    suspects = accused("a", "b")
    assert [suspects.is_suspect(each, 1) for each in ("a", "b", "c")] == [True, True, False]
    assert not any(suspects.is_quarantined(each, 1) for each in ("a", "b"))


def test_the_suspect_of_a_second_death_is_quarantined_and_the_others_are_suspect() -> None:
    suspects = accused("a", "b")
    assert suspects.accuse({"a", "c"}, 1) == {"a"}
    assert suspects.is_quarantined("a", 2)
    assert not suspects.is_suspect("a", 2)
    assert [suspects.is_suspect(each, 2) for each in ("b", "c")] == [True, True]


def test_what_was_computed_to_its_end_is_suspect_no_more() -> None:
    suspects = accused("a", "b")
    suspects.clear("a")
    suspects.clear("nobody")
    assert suspects.accuse({"a"}, 1) == set()
    assert suspects.is_suspect("a", 2)


def test_an_hour_later_nobody_remembers() -> None:
    suspects = accused("a")
    suspects.accuse({"a", "b"}, 1)
    assert suspects.is_quarantined("a", MEMORY)
    assert not suspects.is_quarantined("a", 1 + MEMORY)
    assert not suspects.is_suspect("b", 1 + MEMORY)
    assert suspects.is_empty


@given(st.integers(1, 20))
def test_only_so_many_are_remembered_and_those_that_came_last(num_too_many: int) -> None:
    suspects = Suspects()
    for number in range(MAX_REMEMBERED + num_too_many):
        suspects.accuse({str(number)}, number / 10**6)
    remembered = [suspects.is_suspect(str(number), 1) for number in range(MAX_REMEMBERED + num_too_many)]
    assert remembered == [False] * num_too_many + [True] * MAX_REMEMBERED
