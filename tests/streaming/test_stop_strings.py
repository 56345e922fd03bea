"""A text ends before its earliest stop string, however it arrives, and nothing sent is taken back."""

from collections.abc import Sequence
from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.streaming import StopStrings


def cut_by_search(text: str, stop: Sequence[str]) -> str:
    """The reference: look at the whole text."""
    return text[: min((start for string in stop if (start := text.find(string)) >= 0), default=len(text))]


def fed(pieces: Sequence[str], stop: Sequence[str], *, included: bool = False) -> tuple[str, bool]:
    """What is kept, and whether there was a cut. No character is lost."""
    stop_strings = StopStrings(stop, included=included)
    kept, dropped = zip(*[stop_strings.push(piece) for piece in pieces], stop_strings.flush(), strict=True)
    assert "".join([*kept, *dropped]) == "".join(pieces)
    return "".join(kept), stop_strings.is_cut


def cut_behind_by_search(text: str, stop: Sequence[str]) -> str:
    """The reference for stop strings that stay."""
    matches = [(start, start + len(string)) for string in stop if (start := text.find(string)) >= 0]
    return text[: min(matches)[1]] if matches else text


def split(text: str, cuts: Sequence[int]) -> list[str]:
    borders = [0, *sorted(cuts), len(text)]
    return [text[begin:end] for begin, end in pairwise(borders)]


few_letters = st.text(alphabet="ab", max_size=30)
stop_lists = st.lists(st.text(alphabet="ab", min_size=1, max_size=5), max_size=4)
any_text = st.text(alphabet="ab日👩", max_size=30)
any_stops = st.lists(st.text(alphabet="ab日👩", min_size=1, max_size=4), max_size=4)


@st.composite
def texts_in_pieces(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    text = draw(st.one_of(few_letters, any_text))
    stop = draw(st.one_of(stop_lists, any_stops))
    cuts = draw(st.lists(st.integers(0, len(text)), max_size=10))
    return split(text, cuts), stop


@given(texts_in_pieces())
def test_any_chunking_agrees_with_a_search_of_the_whole_text(case: tuple[list[str], list[str]]) -> None:
    pieces, stop = case
    text = "".join(pieces)
    kept = cut_by_search(text, stop)
    assert fed(pieces, stop) == (kept, kept != text)


@given(texts_in_pieces())
def test_a_stop_string_that_is_included_stays_up_to_its_end(case: tuple[list[str], list[str]]) -> None:
    pieces, stop = case
    text = "".join(pieces)
    assert fed(pieces, stop, included=True) == (cut_behind_by_search(text, stop), text != cut_by_search(text, stop))


@given(texts_in_pieces())
def test_what_was_sent_at_any_moment_is_a_beginning_of_the_answer_and_holds_back_only_what_it_must(
    case: tuple[list[str], list[str]],
) -> None:
    pieces, stop = case
    answer = cut_by_search("".join(pieces), stop)
    stop_strings = StopStrings(stop)
    sent, arrived = "", ""
    for piece in pieces:
        sent += stop_strings.push(piece)[0]
        arrived += piece
        assert answer.startswith(sent)
        held = "" if stop_strings.is_cut else arrived[len(sent) :]
        assert held == "" or any(string.startswith(held) and string != held for string in stop)


@given(few_letters, stop_lists)
def test_the_stop_is_decided_at_the_same_character_for_any_chunking(text: str, stop: list[str]) -> None:
    by_character = StopStrings(stop)
    was_stopped = [by_character.is_cut]
    for character in text:
        by_character.push(character)
        was_stopped.append(by_character.is_cut)
    for end in range(len(text) + 1):
        at_once = StopStrings(stop)
        at_once.push(text[:end])
        assert at_once.is_cut == was_stopped[end]


@pytest.mark.parametrize(
    ("text", "stop", "kept"),
    [
        ("xaaab", ["aab"], "xa"),
        ("abab abac", ["abac"], "abab "),
        ("ababac", ["abac"], "ab"),
        ("abcd", ["c", "bcd"], "a"),
        ("abcx", ["c", "bcd"], "ab"),
        ("abc", ["c", "bcd"], "ab"),
        ("one two", ["two", "tw"], "one "),
        ("one tw", ["two", "tw"], "one "),
        ("aXbcdeZ", ["bcdeY", "cd", "deZ"], "aXb"),
        ("bcdeY", ["bcdeY", "cd", "deZ"], ""),
        ("a👩‍👧b", ["👩‍👧"], "a"),
        ("第一。第二", ["。"], "第一"),
        ("stop", ["stop"], ""),
        ("stopstop", ["stop"], ""),
        ("nothing here", ["absent"], "nothing here"),
        ("half sto", ["stop"], "half sto"),
        ("", ["stop"], ""),
        ("free", [], "free"),
    ],
)
def test_every_split_and_every_order_of_the_stop_strings_cuts_at_the_same_place(
    text: str, stop: list[str], kept: str
) -> None:
    for order in permutations(stop):
        for first in range(len(text) + 1):
            for second in range(first, len(text) + 1):
                assert fed(split(text, [first, second]), order) == (kept, kept != text)
        assert fed(list(text), order) == (kept, kept != text)


def test_a_match_waits_while_a_stop_string_that_started_earlier_can_still_complete() -> None:
    stop_strings = StopStrings(["c", "bcd"])
    assert stop_strings.push("abc") == ("a", "")
    assert not stop_strings.is_cut
    assert stop_strings.push("x") == ("b", "cx")
    assert stop_strings.is_cut


def test_a_match_that_waited_is_decided_at_the_end() -> None:
    stop_strings = StopStrings(["c", "bcd"])
    assert stop_strings.push("abc") == ("a", "")
    assert stop_strings.flush() == ("b", "c")
    assert stop_strings.is_cut


def test_of_stop_strings_that_start_together_the_shortest_is_included() -> None:
    stop_strings = StopStrings(["stop it", "stop"], included=True)
    assert stop_strings.push("and stop") == ("and stop", "")
    assert stop_strings.is_cut


def test_text_behind_the_stop_is_dropped() -> None:
    stop_strings = StopStrings(["."])
    assert stop_strings.push("one. two") == ("one", ". two")
    assert stop_strings.push(" three") == ("", " three")
    assert stop_strings.flush() == ("", "")


def test_held_text_is_given_out_as_soon_as_it_cannot_be_a_stop_string() -> None:
    stop_strings = StopStrings(["\n\nQ:"])
    assert [stop_strings.push(text)[0] for text in ("A\n", "\n", "\n", "B")] == ["A", "", "\n", "\n\nB"]


def test_of_stop_strings_that_start_together_the_shortest_is_included_also_if_it_waited() -> None:
    stop_strings = StopStrings(["xabz", "ab", "a"], included=True)
    assert stop_strings.push("xab") == ("", "")
    assert stop_strings.push("c") == ("xa", "bc")


def test_after_a_flush_text_begins_anew() -> None:
    stop_strings = StopStrings(["aab"])
    assert stop_strings.push("a") == ("", "")
    assert stop_strings.flush() == ("a", "")
    assert stop_strings.push("ab") == ("ab", "")
    assert not stop_strings.is_cut


@pytest.mark.parametrize("piece_size", [1, 7, 4096, 500_000])
def test_long_look_alikes_are_kept_whole(piece_size: int) -> None:
    text = "a" * 500_000
    stop = ["a" * 255 + "b", "a" * 200 + "c"]
    pieces = [text[begin : begin + piece_size] for begin in range(0, len(text), piece_size)]
    assert fed(pieces, stop) == (text, False)
    assert fed([*pieces, "b"], stop) == (text[255:], True)
