"""Which work has ended the engine's process."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.engine.worker.suspects import MAX_REMEMBERED, MEMORY, OUTLIVED, Suspects


def at_once(*digests: str) -> dict[str, int]:
    return dict.fromkeys(digests, 0)


def accused(*digests: str, now: float = 0.0) -> Suspects:
    suspects = Suspects()
    assert suspects.accuse(at_once(*digests), now) is None
    return suspects


def test_what_was_computed_at_a_death_is_suspect_and_nothing_else() -> None:
    suspects = accused("a", "b")
    assert [suspects.is_suspect(each, 1) for each in ("a", "b", "c")] == [True, True, False]
    assert not any(suspects.is_quarantined(each, 1) for each in ("a", "b"))


def test_a_suspect_that_was_alone_at_a_death_is_quarantined_and_the_others_are_cleared() -> None:
    suspects = accused("a", "b")
    assert suspects.accuse(at_once("a"), 1) == "a"
    assert suspects.is_quarantined("a", 2)
    assert not any(suspects.is_suspect(each, 2) for each in ("a", "b"))


@pytest.mark.parametrize("others", [("b",), ("new",), ("b", "new")])
def test_a_suspect_that_was_not_alone_stays_suspect_however_often(others: tuple[str, ...]) -> None:
    suspects = accused("a", "b")
    for now in range(1, 10):
        assert suspects.accuse(at_once("a", *others), now) is None
    assert suspects.num_deaths("a") == 10
    assert suspects.is_suspect("a", 10)
    assert not suspects.is_suspect("new", 10)


@given(st.integers(1, 256))
def test_one_that_ends_every_process_is_found_among_many_in_a_few_deaths(num_works: int) -> None:
    works = [str(number) for number in range(num_works)]
    suspects, num_deaths, group, guilty = Suspects(), 0, works, None
    while guilty is None:
        guilty, num_deaths = suspects.accuse(at_once(*group), num_deaths), num_deaths + 1
        others = [each for each in works[1:] if suspects.is_suspect(each, num_deaths)]
        group = ["0", *others[: suspects.room - 1]]
    assert guilty == "0"
    assert num_deaths <= 1 + num_works.bit_length()


def test_what_was_cleared_is_suspect_no_more() -> None:
    suspects = accused("a", "b")
    suspects.clear("a")
    suspects.clear("nobody")
    assert suspects.accuse(at_once("a"), 1) is None
    assert suspects.is_suspect("a", 2)


def test_a_suspect_that_comes_further_than_at_any_death_has_outlived_them() -> None:
    suspects = Suspects()
    for num_tokens in (100, 7):
        suspects.accuse({"a": num_tokens, "b": 0}, 0)
    assert not suspects.is_outlived("a", 100 + OUTLIVED)
    assert suspects.is_outlived("a", 101 + OUTLIVED)
    assert suspects.is_outlived("b", 1 + OUTLIVED)


def test_an_idle_death_accuses_nobody() -> None:
    suspects = Suspects()
    assert suspects.accuse({}, 0) is None
    assert suspects.is_empty


def test_an_hour_later_nobody_remembers() -> None:
    suspects = accused("a")
    suspects.accuse(at_once("a"), 1)
    suspects.accuse(at_once("b"), 1)
    assert suspects.is_quarantined("a", MEMORY)
    assert not suspects.is_quarantined("a", 1 + MEMORY)
    assert not suspects.is_suspect("b", 1 + MEMORY)
    assert suspects.is_empty


@given(st.integers(1, 20))
def test_only_so_many_are_remembered_and_those_that_came_last(num_too_many: int) -> None:
    suspects = Suspects()
    for number in range(MAX_REMEMBERED + num_too_many):
        suspects.accuse(at_once(str(number)), number / 10**6)
    remembered = [suspects.is_suspect(str(number), 1) for number in range(MAX_REMEMBERED + num_too_many)]
    assert remembered == [False] * num_too_many + [True] * MAX_REMEMBERED
