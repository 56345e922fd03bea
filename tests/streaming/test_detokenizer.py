"""Tokens become whole characters, whatever the tokens' borders."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.vocabulary import Vocabulary
from octavo.streaming import Detokenizer

BYTES = Vocabulary(
    pieces=(*(bytes([value]) for value in range(256)), b""),
    special_tokens=(),
    eog_tokens=frozenset({256}),
    bos_token=None,
    adds_bos=False,
)
CONTROL = 256
# Leads, continuations and the borders between them: overlong forms, surrogates, beyond U+10FFFF.
CRITICAL_BYTES = b"A\x80\x8f\x90\x9f\xa0\xbf\xc0\xc2\xe0\xe2\xed\xef\xf0\xf4\xf5\xff"


@st.composite
def chunkings(draw: st.DrawFn) -> list[bytes]:
    critical = st.lists(st.sampled_from(CRITICAL_BYTES), max_size=12).map(bytes)
    tokens = draw(st.one_of(st.text(max_size=12).map(str.encode), critical))
    cuts = draw(st.lists(st.integers(0, len(tokens)), max_size=8))
    return [tokens[begin:end] for begin, end in pairwise([0, *sorted(cuts), len(tokens)])]


@given(chunkings())
def test_any_chunking_gives_what_decoding_all_bytes_gives(chunks: list[bytes]) -> None:
    detokenizer = Detokenizer(BYTES)
    text = "".join(detokenizer.push(chunk) for chunk in chunks) + detokenizer.flush()
    assert text == b"".join(chunks).decode("utf-8", errors="replace")


@given(st.text(min_size=1))
def test_a_character_comes_with_its_last_byte_and_never_as_a_replacement(text: str) -> None:
    detokenizer = Detokenizer(BYTES)
    for character in text:
        *first, last = character.encode()
        assert all(detokenizer.push((byte,)) == "" for byte in first)
        assert detokenizer.push((last,)) == character
    assert detokenizer.flush() == ""


@pytest.mark.parametrize("text", ["👩‍👩‍👧", "日本語", "e\u0301", "\ufeffhead", "\u0000", "\ufffd"])
def test_every_split_into_two_gives_the_text(text: str) -> None:
    data = text.encode()
    for cut in range(len(data) + 1):
        detokenizer = Detokenizer(BYTES)
        assert detokenizer.push(data[:cut]) + detokenizer.push(data[cut:]) + detokenizer.flush() == text


def test_bytes_that_can_no_longer_become_a_character_are_replaced_at_once() -> None:
    detokenizer = Detokenizer(BYTES)
    assert detokenizer.push(b"\xf0\x9f") == ""
    assert detokenizer.push(b"a") == "\ufffda"


def test_an_unfinished_character_is_replaced_at_the_end() -> None:
    detokenizer = Detokenizer(BYTES)
    assert detokenizer.push("日".encode()[:2]) == ""
    assert detokenizer.flush() == "\ufffd"


def test_control_tokens_have_no_text_and_do_not_break_a_character() -> None:
    detokenizer = Detokenizer(BYTES)
    first, *rest = "é".encode()
    assert detokenizer.push((CONTROL, first, CONTROL, *rest)) == "é"


def test_a_token_with_a_piece_of_its_own_here_has_that_instead_of_the_vocabularys() -> None:
    detokenizer = Detokenizer(BYTES, {CONTROL: b"<end>", ord("b"): b""})
    assert detokenizer.push((ord("a"), ord("b"), CONTROL)) == "a<end>"
    assert [detokenizer.piece(token) for token in (ord("a"), ord("b"), CONTROL)] == [b"a", b"", b"<end>"]


@given(chunkings())
def test_it_is_between_characters_when_a_flush_would_give_nothing(chunks: list[bytes]) -> None:
    detokenizer = Detokenizer(BYTES)
    for chunk in chunks:
        detokenizer.push(chunk)
    is_between_characters = detokenizer.is_between_characters
    assert is_between_characters == (detokenizer.flush() == "")
