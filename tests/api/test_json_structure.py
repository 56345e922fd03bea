"""Depth and number of items, told from bytes, beside a reader that goes character by character."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.api import json_structure
from octavo.api.json_structure import Structure, at_most, nesting, structures

PIECE = json_structure.PIECE


def plain(text: bytes) -> Structure:
    """Of text without a backslash outside of strings, which would be no JSON."""
    level = depth = num_items = 0
    is_string = is_escaped = False
    for character in text.decode("latin-1"):
        if is_string:
            is_string = is_escaped or character != '"'
            is_escaped = character == "\\" and not is_escaped
        elif character == '"':
            is_string = True
        elif character in "[{":
            level, num_items = level + 1, num_items + 1
            depth = max(depth, level)
        elif character in "]}":
            level -= 1
        elif character == ":":
            num_items += 1
    return Structure(depth, num_items)


def whole(text: bytes) -> Structure:
    return max(structures(text), default=Structure(0, 0))


STRINGS = st.text(st.sampled_from('\\"[]{}:ax'), max_size=12)
VALUES = st.recursive(
    st.integers() | STRINGS, lambda inner: st.lists(inner) | st.dictionaries(STRINGS, inner), max_leaves=30
)


@given(VALUES, st.floats(0, 1))
def test_each_text_and_each_beginning_of_it_is_told_wherever_its_pieces_end(value: Any, share: float) -> None:
    text = json.dumps(value).encode()
    text = text[: round(len(text) * share)] if share < 0.5 else text
    for size in (1, 2, 3, 7, PIECE):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(json_structure, "PIECE", size)
            assert whole(text) == plain(text)
            assert nesting(text) == plain(text).depth
    upper = at_most(text)
    assert upper.depth >= plain(text).depth
    assert upper.num_items >= plain(text).num_items


@pytest.mark.parametrize("shift", range(-3, 4))
@pytest.mark.parametrize("part", [b'"[", ', b'"\\\\", "\\"", ', b"[", b"]", b'{"a":[1]}, '])
def test_nothing_is_lost_where_a_piece_ends(part: bytes, shift: int) -> None:
    text = b"[" * (PIECE // len(part) * len(part) + shift) + part * 5 + b'"[[[' + part
    assert whole(text) == plain(text)


def test_pieces_are_small_whatever_is_in_them() -> None:
    for text in (b'"' + b"\\" * (3 * PIECE + 1) + b'"', b"[" * (3 * PIECE), b'"\\"' * PIECE):
        assert max(map(len, json_structure._pieces(text))) <= PIECE + 1


def test_levels_go_on_from_piece_to_piece() -> None:
    text = b"[" * (PIECE + 5) + b"]" * 7 + b"[" * 8
    assert whole(text) == Structure(PIECE + 6, PIECE + 13)


def test_who_finds_too_much_is_told_with_the_first_piece() -> None:
    assert next(structures(b"[" * (4 * PIECE))) == Structure(PIECE, PIECE)
