"""Cuts see their channels' text in order, and the first one ends everything."""

from octavo.core.channels import Channel
from octavo.streaming import ContentFilter, StopStrings
from octavo.streaming.cuts import Cuts, SpareFirst

ANSWER, REASONING, HIDDEN = Channel.ANSWER, Channel.REASONING, Channel.HIDDEN


def test_text_that_is_held_is_released_when_another_channel_begins() -> None:
    cuts = Cuts({ANSWER: StopStrings(["abc"])})
    assert cuts.push([(ANSWER, "xab")]) == [(ANSWER, "x")]
    assert cuts.push([(REASONING, "so")]) == [(ANSWER, "ab"), (REASONING, "so")]
    assert cuts.push([(ANSWER, "c")]) == [(ANSWER, "c")]
    assert not cuts.is_cut


def test_a_match_that_waited_is_decided_when_another_channel_begins() -> None:
    cuts = Cuts({ANSWER: StopStrings(["c", "bcd"])})
    assert cuts.push([(ANSWER, "abc"), (REASONING, "so")]) == [
        (ANSWER, "a"),
        (ANSWER, "b"),
        (HIDDEN, "c"),
        (HIDDEN, "so"),
    ]
    assert cuts.is_cut


def test_a_channel_without_a_cutter_is_never_cut() -> None:
    cuts = Cuts({ANSWER: StopStrings(["a"])})
    assert cuts.push([(REASONING, "a")]) == [(REASONING, "a")]


def test_behind_a_cut_all_channels_are_hidden() -> None:
    cuts = Cuts({ANSWER: StopStrings(["."])})
    assert cuts.push([(ANSWER, "a.b"), (REASONING, "c")]) == [(ANSWER, "a"), (HIDDEN, ".b"), (HIDDEN, "c")]
    assert cuts.push([(ANSWER, "d")]) == [(HIDDEN, "d")]
    assert cuts.flush() == []


def test_each_channel_has_its_own_cutter() -> None:
    content_filter = ContentFilter(["ab"])
    cuts = Cuts({ANSWER: content_filter.new_text(), REASONING: content_filter.new_text()})
    assert cuts.push([(REASONING, "xa"), (ANSWER, "b")]) == [(REASONING, "x"), (REASONING, "a"), (ANSWER, "b")]
    assert not cuts.is_cut


def test_spared_text_is_let_past_even_if_it_was_held_back_before() -> None:
    cuts = Cuts({ANSWER: StopStrings(["ab"])})
    sparing = SpareFirst(cuts, num_tokens=2)
    sparing.count("xa")
    assert sparing.push([(ANSWER, "x")]) == [(ANSWER, "x"), (ANSWER, "")]
    sparing.count("ba")
    sparing.count("ab")
    assert sparing.push([(ANSWER, "abaab")]) == [(ANSWER, "aba"), (ANSWER, ""), (HIDDEN, "ab")]
    assert cuts.is_cut
