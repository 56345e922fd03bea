"""Each character has one channel, whatever the pieces; markers take the white space around them along."""

import re
from collections.abc import Sequence
from itertools import groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.channels import Channel, ChannelFormat
from octavo.streaming.channels import Channels, OneChannel
from octavo.streaming.segment import Segment
from streaming.builders import FORMATS, HARMONY, THINK_FORMAT

ANSWER, REASONING, HIDDEN = Channel.ANSWER, Channel.REASONING, Channel.HIDDEN


def joined(segments: Sequence[Segment]) -> list[Segment]:
    full = [segment for segment in segments if segment[1]]
    return [(channel, "".join(text for _, text in run)) for channel, run in groupby(full, lambda segment: segment[0])]


def divided(parts: Sequence[str], form: ChannelFormat) -> list[Segment]:
    channels = Channels(form)
    return joined([*(segment for part in parts for segment in channels.push(part)), *channels.flush()])


def divided_by_search(text: str, form: ChannelFormat) -> list[Segment]:
    """The reference: the whole text at once."""
    markers = "|".join(re.escape(marker) for marker, _ in form.markers)
    channel, segments = form.initial, []
    rest = text if channel is ANSWER else text.lstrip()
    segments.append((HIDDEN, text[: len(text) - len(rest)]))
    for place, part in enumerate(re.split(rf"(\s*(?:{markers})\s*)", rest)):
        segments.append((HIDDEN if place % 2 else channel, part))
        channel = dict(form.markers)[part.strip()] if place % 2 else channel
    return joined(segments)


formats = st.sampled_from([form for form in FORMATS if form.markers])
words = st.sampled_from(
    ["<think>", "</think>", *(marker for marker, _ in HARMONY.markers), "<th", "<|", " ", "\n", "a"]
)
texts = st.lists(words, max_size=12).map("".join)


@given(texts, formats, st.lists(st.integers(0, 200), max_size=10))
def test_any_chunking_agrees_with_a_search_of_the_whole_text(text: str, form: ChannelFormat, cuts: list[int]) -> None:
    borders = pairwise([0, *sorted(min(cut, len(text)) for cut in cuts), len(text)])
    expected = divided_by_search(text, form)
    assert divided([text[begin:end] for begin, end in borders], form) == expected
    assert divided(list(text), form) == expected


@given(texts, formats)
def test_no_character_is_lost(text: str, form: ChannelFormat) -> None:
    assert "".join(part for _, part in divided(list(text), form)) == text


@given(st.lists(st.text(max_size=5)), st.sampled_from(Channel))
def test_without_markers_nothing_waits(parts: list[str], channel: Channel) -> None:
    machine = OneChannel(channel)
    assert [machine.push(part) for part in parts] == [[(channel, part)] for part in parts]
    assert machine.flush() == []


def test_white_space_within_a_part_comes_with_what_follows_it() -> None:
    channels = Channels(THINK_FORMAT)
    said = [joined(channels.push(text)) for text in ("one \n", "\t", "two ")]
    assert said == [[(ANSWER, "one")], [], [(ANSWER, " \n\ttwo")]]
    assert joined(channels.flush()) == [(ANSWER, " ")]


def test_white_space_at_the_very_beginning_belongs_to_the_answer() -> None:
    assert divided(["  hi"], THINK_FORMAT) == [(ANSWER, "  hi")]


def test_a_marker_is_hidden_also_where_it_changes_nothing() -> None:
    assert divided(["<think>a <think> b</think>\n\nc </think>d"], THINK_FORMAT) == [
        (HIDDEN, "<think>"),
        (REASONING, "a"),
        (HIDDEN, " <think> "),
        (REASONING, "b"),
        (HIDDEN, "</think>\n\n"),
        (ANSWER, "c"),
        (HIDDEN, " </think>"),
        (ANSWER, "d"),
    ]


def test_a_format_may_begin_in_reasoning_behind_a_marker_of_the_prompt() -> None:
    form = ChannelFormat(THINK_FORMAT.markers, REASONING)
    assert divided(["\nso", "</think>", "yes"], form) == [
        (HIDDEN, "\n"),
        (REASONING, "so"),
        (HIDDEN, "</think>"),
        (ANSWER, "yes"),
    ]


def test_parts_of_markers_are_hidden_by_themselves_and_leave_the_channel() -> None:
    channels = Channels(HARMONY, ["<|channel|>", "<|message|>"])
    text = "<|channel|>final<|message|>a<|message|>b<|channel|>c"
    assert joined([*channels.push(text), *channels.flush()]) == [
        (HIDDEN, "<|channel|>final<|message|>"),
        (ANSWER, "a"),
        (HIDDEN, "<|message|>"),
        (ANSWER, "b"),
        (HIDDEN, "<|channel|>"),
        (ANSWER, "c"),
    ]


@pytest.mark.parametrize("piece_size", [7, 500_000])
def test_much_white_space_waits_and_is_kept_whole(piece_size: int) -> None:
    text = "a" + " " * 500_000
    parts = [text[begin : begin + piece_size] for begin in range(0, len(text), piece_size)]
    assert divided([*parts, "b"], THINK_FORMAT) == [(ANSWER, text + "b")]
    assert divided([*parts, "<think>"], THINK_FORMAT) == [(ANSWER, "a"), (HIDDEN, text[1:] + "<think>")]


QUOTABLE = ChannelFormat(THINK_FORMAT.markers, quotable=frozenset({"<think>", "</think>"}))


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        (
            "<think>hm</think>Use a <think> tag. Done.",
            [(HIDDEN, "<think>"), (REASONING, "hm"), (HIDDEN, "</think>"), (ANSWER, "Use a <think> tag. Done.")],
        ),
        (
            "\n<think>hm, <think>? </think>\nSplit at </think> and go on.",
            [
                (HIDDEN, "\n<think>"),
                (REASONING, "hm, <think>?"),
                (HIDDEN, " </think>\n"),
                (ANSWER, "Split at </think> and go on."),
            ],
        ),
        ("No </think> was begun.", [(ANSWER, "No </think> was begun.")]),
        (
            "<think>a</think><think>b</think>c",
            [
                (HIDDEN, "<think>"),
                (REASONING, "a"),
                (HIDDEN, "</think><think>"),
                (REASONING, "b"),
                (HIDDEN, "</think>"),
                (ANSWER, "c"),
            ],
        ),
    ],
)
def test_a_marker_that_an_answer_speaks_of_is_text(text: str, segments: list[Segment]) -> None:
    assert divided([text], QUOTABLE) == divided(list(text), QUOTABLE) == segments


def test_a_control_token_is_never_text_be_it_out_of_place() -> None:
    channels = Channels(QUOTABLE, parts=["<think>"])
    assert joined(channels.push("a<think>b")) == [(ANSWER, "a"), (HIDDEN, "<think>"), (REASONING, "b")]
