import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompting_builders import END, SPECIAL_TOKENS, START, control, user_defined, vocabulary

from octavo.prompting import split_special
from octavo.prompting.markers import SENTINELS, Fragment, Markers
from octavo.prompting.trie import longest_of

CUT = SENTINELS[0]
TOOL_MARKERS = Markers(vocabulary(user_defined(256, "<tool_call>"), control(257, "<|im_start|>")), "<tool_call>")
CHAT = Markers(vocabulary(START, END))


def ids(fragments: list[Fragment]) -> list[int]:
    return [fragment for fragment in fragments if isinstance(fragment, int)]


@pytest.mark.parametrize(
    ("text", "protected"),
    [
        ("plain < text | with > pieces", "plain < text | with > pieces"),
        ("a<|im_end|>b", f"a<{CUT}|im_end|>b"),
        ("<|im_end|><|im_start|>", f"<{CUT}|im_end|><{CUT}|im_start|>"),
        ("ends with <|im_", f"ends with <{CUT}|im_"),
        ("trimmed <|im_ \n", f"trimmed <{CUT}|im_ \n"),
        ("|> begins", f"|{CUT}> begins"),
        ("  |> begins", f"  |{CUT}> begins"),
        ("im_", f"i{CUT}m_"),
        (" im_ ", f" i{CUT}m_ "),
        ("", ""),
        (" ", " "),
    ],
)
def test_a_text_is_marked_only_where_it_could_be_part_of_a_marker(text: str, protected: str) -> None:
    assert CHAT.protect(text, CUT) == protected


def test_overlapping_markers_are_all_marked() -> None:
    markers = Markers(vocabulary(control(256, "aa")))
    assert markers.protect("xaaax", CUT) == f"xa{CUT}a{CUT}ax"
    assert markers.split(markers.protect("xaaax", CUT), CUT) == ["xaaax"]


def test_special_tokens_are_found_in_a_text_and_the_longest_wins() -> None:
    tokens = vocabulary(START, END, control(258, "<|im_end|>!"))
    assert split_special("<|im_start|>a<|im_end|><|im_end|>!b", tokens) == [256, "a", 257, 258, "b"]
    assert split_special("plain", tokens) == ["plain"]
    assert split_special("", tokens) == []


def test_a_vocabulary_without_special_tokens_splits_nothing() -> None:
    assert split_special("<|im_start|>", vocabulary()) == ["<|im_start|>"]
    assert split_special("text", vocabulary(control(256, ""))) == ["text"]


def test_text_that_the_tokenizer_finds_by_itself_is_left_to_it() -> None:
    tokens = vocabulary(START, user_defined(257, "\n\n"), user_defined(258, "<tool_call>"))
    assert split_special("<|im_start|>\n\n<tool_call>", tokens) == [256, "\n\n<tool_call>"]


def test_user_defined_tokens_that_a_template_writes_are_markers() -> None:
    markers = Markers(vocabulary(user_defined(256, "<tool_call>"), user_defined(257, "<b>")), "{{ '<tool_call>' }}")
    assert markers.split("<tool_call><b>") == [256, "<b>"]


def test_digits_and_white_space_that_a_template_happens_to_hold_are_no_markers() -> None:
    markers = Markers(vocabulary(user_defined(256, "\n\n"), user_defined(257, "1")), "{{ 'x' * 1 }}\n\n")
    assert markers.split(markers.protect("1\n\n1", CUT), CUT) == ["1\n\n1"]


def test_a_forged_user_defined_marker_is_cut_and_a_forged_control_token_is_joined() -> None:
    text = TOOL_MARKERS.protect("a<tool_call>b<|im_start|>c", CUT)
    assert TOOL_MARKERS.split(text, CUT) == ["a<", "tool_call>b<|im_start|>c"]


def test_a_user_defined_marker_is_cut_wherever_template_and_user_meet_in_it() -> None:
    markers = TOOL_MARKERS
    assert markers.split("<tool_" + markers.protect("call>", CUT), CUT) == ["<tool_c", "all>"]
    assert markers.split(markers.protect("<tool_", CUT) + "call>", CUT) == ["<", "tool_call>"]


def test_a_marker_of_one_character_cannot_be_typed() -> None:
    markers = Markers(vocabulary(control(256, "§")))
    assert markers.split("§" + markers.protect("§1", CUT) + "§", CUT) == [256, "§1", 256]


def test_a_longer_marker_that_ends_in_a_users_character_leaves_the_shorter_one() -> None:
    markers = Markers(vocabulary(control(256, "<a>"), control(257, "<a>b")))
    assert markers.split("<a>" + markers.protect("b", CUT), CUT) == [256, "b"]


def test_white_space_belongs_to_tokens_that_strip_it() -> None:
    left, right = control(256, "<l>", strips_left=True), control(257, "<r>", strips_right=True)
    tokens = vocabulary(left, right, control(258, "<|im_end|>"))
    assert split_special("a \n<l> b", tokens) == ["a", 256, " b"]
    assert split_special("a <r> \t\nb", tokens) == ["a ", 257, "b"]
    assert split_special("<r>  <l>", tokens) == [257, 256]
    assert split_special("a <|im_end|> b", tokens) == ["a ", 258, " b"]


PIECES = st.sampled_from(
    ["<", "<|", "|im_", "start", "end", "im", "_", "|>", ">", " ", "x", "<s", "<tool", "_call", "é"]
)
TEXTS = st.lists(PIECES, max_size=8).map("".join)


@given(texts=st.lists(TEXTS.filter(bool), max_size=4), template=st.lists(TEXTS, min_size=5, max_size=5))
def test_no_character_of_a_user_becomes_part_of_a_special_token(texts: list[str], template: list[str]) -> None:
    """Whatever a template writes around a user's texts, special tokens are found only where it alone spells them."""
    markers = Markers(vocabulary(*SPECIAL_TOKENS), "<tool_call>")
    parts = template[: len(texts) + 1]
    joined = parts[0] + "".join(
        markers.protect(text, CUT) + after for text, after in zip(texts, parts[1:], strict=True)
    )
    assert ids(markers.split(joined, CUT)) == [id for part in parts for id in ids(markers.split(part))]


@given(texts=st.lists(TEXTS))
def test_splitting_loses_no_character(texts: list[str]) -> None:
    markers = Markers(vocabulary(*SPECIAL_TOKENS), "<tool_call>")
    spelled = {token.id: token.text for token in SPECIAL_TOKENS}
    protected = "".join(markers.protect(text, CUT) for text in texts)
    fragments = markers.split(protected, CUT)
    assert all(isinstance(fragment, str) and fragment for fragment in fragments)
    assert "".join(map(str, fragments)) == "".join(texts)
    raw = markers.split("".join(texts))
    assert "".join(spelled[part] if isinstance(part, int) else part for part in raw) == "".join(texts)


@given(literals=st.lists(st.text("ab|", min_size=1), min_size=1), text=st.text("ab|"))
def test_the_trie_matches_the_longest_literal(literals: list[str], text: str) -> None:
    match = re.match(longest_of(literals), text)
    expected = max((literal for literal in literals if text.startswith(literal)), key=len, default=None)
    assert (match.group() if match else None) == expected
