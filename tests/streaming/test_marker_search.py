"""Markers are found wherever the text is cut, and nothing is lost on the way."""

import re
from collections.abc import Sequence
from itertools import groupby, pairwise
from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.streaming.markers import MarkerSearch

Pieces = list[tuple[str, bool]]


def joined(pieces: Sequence[tuple[str, bool]]) -> Pieces:
    """Without empty text, and with the text between two markers in one piece."""
    out: Pieces = []
    for is_marker, run in groupby(filter(itemgetter(0), pieces), itemgetter(1)):
        texts = [text for text, _ in run]
        out += [(text, True) for text in texts] if is_marker else [("".join(texts), False)]
    return out


def found(parts: Sequence[str], markers: Sequence[str]) -> Pieces:
    search = MarkerSearch(markers)
    return joined([*(piece for part in parts for piece in search.push(part)), *search.flush()])


def found_by_search(text: str, markers: Sequence[str]) -> Pieces:
    """The reference: the whole text, the longest marker first."""
    if not markers:
        return joined([(text, False)])
    pattern = "|".join(re.escape(marker) for marker in sorted(markers, key=len, reverse=True))
    return joined([(part, place % 2 == 1) for place, part in enumerate(re.split(f"({pattern})", text))])


def split(text: str, cuts: Sequence[int]) -> list[str]:
    return [text[begin:end] for begin, end in pairwise([0, *sorted(cuts), len(text)])]


marker_lists = st.lists(st.text(alphabet="<>a", min_size=1, max_size=5), max_size=4, unique=True)
texts = st.text(alphabet="<>ab", max_size=30)


@given(texts, marker_lists, st.lists(st.integers(0, 30), max_size=10))
def test_any_chunking_agrees_with_a_search_of_the_whole_text(text: str, markers: list[str], cuts: list[int]) -> None:
    parts = split(text, [min(cut, len(text)) for cut in cuts])
    assert found(parts, markers) == found_by_search(text, markers)
    assert found(list(text), markers) == found_by_search(text, markers)


@given(texts, marker_lists)
def test_only_what_may_begin_a_marker_is_held_back(text: str, markers: list[str]) -> None:
    search = MarkerSearch(markers)
    given_out = ""
    for end, character in enumerate(text, 1):
        given_out += "".join(piece for piece, _ in search.push(character))
        held = text[len(given_out) : end]
        assert held == "" or any(marker.startswith(held) for marker in markers)


def test_a_marker_that_no_longer_one_begins_with_is_found_with_its_last_character() -> None:
    search = MarkerSearch(["<think>", "</think>"])
    assert joined(search.push("so</think")) == [("so", False)]
    assert joined(search.push(">")) == [("</think>", True)]


def test_a_marker_that_a_longer_one_begins_with_waits_for_it() -> None:
    markers = ["<|channel|>", "<|channel|>final"]
    assert found(["<|channel|>", "final", "!"], markers) == [("<|channel|>final", True), ("!", False)]
    assert found(["<|channel|>", "fin", "d"], markers) == [("<|channel|>", True), ("find", False)]
    assert found(["<|channel|>", "fin"], markers) == [("<|channel|>", True), ("fin", False)]


@pytest.mark.parametrize("piece_size", [1, 500_000])
@pytest.mark.parametrize("look_alike", ["<think", "<", "</think></thin"])
def test_long_look_alikes_are_kept_whole(look_alike: str, piece_size: int) -> None:
    text = (look_alike * (500_000 // len(look_alike) + 1))[:500_000]
    markers = ["<think>", "</think>"]
    parts = [text[begin : begin + piece_size] for begin in range(0, len(text), piece_size)]
    assert found(parts, markers) == found_by_search(text, markers)
