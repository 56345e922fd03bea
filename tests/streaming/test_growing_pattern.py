"""A place is given up only when nothing that may follow can make a match of it."""

import pytest

from octavo.streaming.growing_pattern import GrowingPattern, Match


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("bad", "bad"),
        (r"a\Bb", "ab"),
        (r"a\B\w\B\w", "abc"),
        (r" \bbad", " bad"),
        (r"a\M b", "a b"),
        (r" \mb", " b"),
        ("a(?!$)", "ab"),
        (r"a(?!\Z).", "ab"),
        ("a(?<!$)b", "ab"),
        ("(?!ab)a.", "ac"),
        ("a(?=.*c)", "abc"),
        ("[^a](?!$)", "b\n\nc"),
        (".+?(?<!a)", "aab"),
        (r"\w+?(?<=aab)c", "aabc"),
        (r"[a ]+?\mb", "a b"),
        (r"(?:\b|ba)", "ba"),
        ("a*", "aa"),
    ],
)
def test_a_match_of_a_text_is_open_in_every_beginning_of_it(pattern: str, text: str) -> None:
    growing = GrowingPattern(pattern)
    states = [growing.match_at(text[:length], 0) for length in range(1, len(text) + 1)]
    assert growing.is_at(text, 0)
    assert growing.may_begin_with(text[0], "")
    assert Match.NONE not in states


@pytest.mark.parametrize(
    ("text", "states"),
    [
        ("bad", [Match.OPEN, Match.OPEN, Match.AT_END]),
        ("bad!", [Match.OPEN, Match.OPEN, Match.AT_END, Match.INSIDE]),
        ("badge", [Match.OPEN, Match.OPEN, Match.AT_END, Match.NONE, Match.NONE]),
        ("bet", [Match.OPEN, Match.NONE, Match.NONE]),
    ],
)
def test_more_text_completes_a_match_or_undoes_it(text: str, states: list[Match]) -> None:
    growing = GrowingPattern(r"bad\b")
    assert [growing.match_at(text[:length], 0) for length in range(1, len(text) + 1)] == states


@pytest.mark.parametrize(
    ("pattern", "before", "character", "may_begin"),
    [
        ("bad", "", "b", True),
        ("bad", "", "a", False),
        (r"\bbad", "x", "b", False),
        (r"\bbad", " ", "b", True),
        (r"\Bbad", "x", "b", True),
        ("(?m)^bad", "\n", "b", True),
        ("^bad", "\n", "b", False),
        ("(?<=very )bad", " ", "b", True),
    ],
)
def test_whether_a_match_may_begin_is_seen_at_its_first_character(
    pattern: str, before: str, character: str, may_begin: bool
) -> None:
    assert GrowingPattern(pattern).may_begin_with(character, before) == may_begin


def test_no_match_is_empty() -> None:
    growing = GrowingPattern(r"a*|\b")
    assert growing.match_at("b", 0) is Match.NONE
    assert not growing.is_at("b", 0)
