"""What an operator does not want is never given out, not even its beginning."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from octavo.streaming import ContentFilter
from octavo.streaming.content_filter import MAX_HELD

# Characters that a pattern may take, and what it may ask of a place; asking beyond the next character is left out,
# because a text that grows cannot be asked whether something will not come.
takers = st.sampled_from(["a", "b", " ", ".", "[ab]", "[^a]", r"\w", "(?i:B)", "ab"])
askers = st.sampled_from([r"\b", r"\B", "(?=b)", "(?!b)", "(?<=a)", "(?<!a)", "(?=a.*b)", "^", r"\m", r"\M"])
repeated = st.builds(str.__add__, takers, st.sampled_from(["", "", "*", "+", "?", "+?", "{2}"]))
sequences = st.lists(repeated | askers, min_size=1, max_size=4).map("".join)
expressions = st.lists(sequences, min_size=1, max_size=3).map(lambda parts: "(?:" + "|".join(parts) + ")")
texts = st.text(alphabet="aabb c", max_size=14)


def filtered(parts: Sequence[str], content_filter: ContentFilter) -> tuple[str, bool]:
    """What is kept, and whether there was a cut. No character is lost."""
    text = content_filter.new_text()
    kept, dropped = zip(*[text.push(part) for part in parts], text.flush(), strict=True)
    assert "".join([*kept, *dropped]) == "".join(parts)
    return "".join(kept), text.is_cut


def first_match(text: str, pattern: str) -> int:
    """The reference: the first place of the whole text where a match of at least one character begins."""
    match = regex.compile(rf"(?:{pattern})(?!\G)")
    return next((place for place in range(len(text)) if match.match(text, place)), len(text))


@given(st.lists(expressions, min_size=1, max_size=3), texts)
def test_a_text_ends_before_the_earliest_match_in_the_whole_of_it(patterns: list[str], text: str) -> None:
    content_filter = ContentFilter(patterns)
    kept = text[: min(first_match(text, pattern) for pattern in patterns)]
    assert filtered(list(text), content_filter) == (kept, kept != text)


@given(
    st.lists(expressions | st.sampled_from(["a(?!bc)", "a$", "b(?!.*c)", r"a\Z"]), min_size=1, max_size=3),
    st.text(alphabet="aabb\n c", max_size=14),
    st.lists(st.integers(0, 14), max_size=6),
)
def test_any_chunking_is_cut_at_the_same_place(patterns: list[str], text: str, cuts: list[int]) -> None:
    content_filter = ContentFilter(patterns)
    borders = pairwise([0, *sorted(min(cut, len(text)) for cut in cuts), len(text)])
    by_character = filtered(list(text), content_filter)
    assert filtered([text], content_filter) == by_character
    assert filtered([text[begin:end] for begin, end in borders], content_filter) == by_character


@pytest.mark.parametrize(
    ("patterns", "text", "kept"),
    [
        (["bad"], "so bad it is", "so "),
        (["bad"], "so BAD it is", "so BAD it is"),
        (["(?i)bad"], "so BAD it is", "so "),
        ([r"\bbad\b"], "badge, badly, forbad", "badge, badly, forbad"),
        ([r"\bbad\b"], "not badge but bad", "not badge but "),
        (["bad$"], "bad things", "bad things"),
        (["bad$"], "things bad", "things "),
        (["bad(?!ge)"], "badge", ""),
        ([r"\d{3}-\d{4}"], "call 555-01234", "call "),
        ([r"\d{3}-\d{4}"], "call 555-012", "call 555-012"),
        (["secret.*"], "a secret is out\nand more", "a "),
        (["c", "bcd"], "abcd", "a"),
        (["c", "bcd"], "abcx", "ab"),
        (["bcd|c"], "abcd", "a"),
        (["(?<=my )name"], "my name, not your name", "my "),
        (["👩‍👧", "日本"], "in 日本で", "in "),
        (["a*", "b|"], "so bad", "so "),
        (["", "$", r"\b"], "anything", "anything"),
        (["(?x) b a d  # as in badge"], "so bad", "so "),
        ([], "anything", "anything"),
    ],
)
def test_every_split_is_cut_at_the_same_place(patterns: list[str], text: str, kept: str) -> None:
    content_filter = ContentFilter(patterns)
    for first in range(len(text) + 1):
        parts = [text[:first], text[first:]]
        assert filtered(parts, content_filter) == (kept, kept != text)
    assert filtered(list(text), content_filter) == (kept, kept != text)


def test_only_what_may_begin_a_match_is_held_back() -> None:
    text = ContentFilter([r"\bbad\b"]).new_text()
    assert [text.push(part)[0] for part in ("so ba", "k", " bad", "g", "e")] == ["so ", "bak", " ", "badg", "e"]


def test_a_match_is_certain_once_a_character_follows_it() -> None:
    text = ContentFilter([r"\bbad\b"]).new_text()
    assert text.push("so bad") == ("so ", "")
    assert not text.is_cut
    assert text.push(" it is") == ("", "bad it is")
    assert text.is_cut
    assert text.push("!") == ("", "!")


def test_no_more_is_held_back_than_the_longest_match_that_is_found() -> None:
    text = ContentFilter(["<.*>"]).new_text()
    filler = "x" * MAX_HELD
    assert text.push("<" + filler) == ("<" + filler, "")
    assert text.push("> <" + filler[3:]) == ("> ", "")
    assert text.push(">!") == ("", "<" + filler[3:] + ">!")


def test_a_match_that_could_go_on_for_ever_is_one() -> None:
    text = ContentFilter(["(?s)secret.*"]).new_text()
    kept, dropped = zip(*[text.push("a secret") for _ in range(MAX_HELD)], strict=True)
    assert "".join(kept) == "a "
    assert text.is_cut
    assert "".join(dropped).startswith("secret")


def test_a_pattern_that_takes_too_long_ends_the_text_before_the_place_where_it_was_tried() -> None:
    assert filtered(list("so " + "a" * 60 + "!" + " and more"), ContentFilter(["(?:a|aa)+$"])) == ("so ", True)


def test_a_match_that_began_before_an_interruption_does_not_get_by() -> None:
    text = ContentFilter(["badword"]).new_text()
    assert text.push("a bad") == ("a ", "")
    assert text.flush() == ("bad", "")
    assert text.push("word!") == ("", "word!")
    assert text.is_cut


@pytest.mark.parametrize("pattern", ["(", "[a", "(?r)a", r"\g<x>", "a)|(b"])
def test_a_bad_pattern_is_named(pattern: str) -> None:
    with pytest.raises(ValueError, match=regex.escape(repr(pattern))):
        ContentFilter(["fine", pattern])


@pytest.mark.parametrize("pattern", [r"[\b$]", r"\$", r"\\b", r"(?#\b$)x", r"[]$]", r"[[:alpha:]$]", r"[^]\b]"])
def test_dollars_and_backslashes_that_are_no_questions_keep_their_meaning(pattern: str) -> None:
    for text in ["\b", "$", r"\b", "x", "]", "a", "b", "\\"]:
        kept = text[: first_match(text, pattern)]
        assert filtered([text], ContentFilter([pattern])) == (kept, kept != text)
