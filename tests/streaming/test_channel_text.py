"""Reasoning is told from the answer, and only the answer has stop strings and entries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.channels import Channel, ChannelFormat
from octavo.core.output import FinishReason
from octavo.core.request import LogprobParams
from octavo.streaming import ContentFilter
from streaming.builders import (
    CHANNEL,
    CLOSE,
    END,
    HARMONY,
    MESSAGE,
    THINK,
    THINK_FORMAT,
    THINKING,
    Answer,
    answer_to,
    choice,
    events_of,
)

OPEN = ChannelFormat(THINK_FORMAT.markers, Channel.REASONING)
OUTPUT = LogprobParams(of_output=True)


def parts_of(answer: Answer) -> tuple[str, str]:
    return answer.reasoning, answer.text


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        ("<think>so</think>yes", "so", "yes"),
        ("<think>\nso\n</think>\n\nyes", "so", "yes"),
        ("<think></think>yes", "", "yes"),
        ("<think>so <think> on</think>yes", "soon", "yes"),
        ("<think>so</think>yes<think>and</think>no", "soand", "yesno"),
        ("<think>never closed", "never closed", ""),
        ("yes</think> no", "", "yesno"),
        ("no marker: <thin", "", "no marker: <thin"),
        ("  yes ", "", "  yes "),
        ("<think>so</think>", "so", ""),
    ],
)
def test_what_is_between_the_markers_is_reasoning(text: str, reasoning: str, answer: str) -> None:
    assert parts_of(answer_to(choice(channels=THINK_FORMAT), text.encode())) == (reasoning, answer)


@given(st.lists(st.sampled_from([*b"ab< ", THINKING]), max_size=8), st.lists(st.sampled_from(b"xy \n"), max_size=8))
def test_reasoning_that_the_prompt_opened_ends_at_the_closing_marker(before: list[int], behind: list[int]) -> None:
    generated = [*before, *b"</think>", *behind]
    answer = answer_to(choice(channels=OPEN), generated)
    text = b"".join(b"x</think>y" if token == THINKING else bytes([token]) for token in generated).decode()
    head, *rest = text.split("</think>")
    assert answer.reasoning == head.strip()
    assert answer.text == "".join(part.strip() for part in rest[:-1]) + rest[-1].lstrip()


def test_a_marker_may_be_a_control_token() -> None:
    answer = answer_to(choice(channels=THINK_FORMAT), [THINK, *b"so</think>yes"])
    assert parts_of(answer) == ("so", "yes")


def test_control_tokens_that_are_no_markers_stay_silent() -> None:
    answer = answer_to(choice(channels=THINK_FORMAT), [THINK, *b"so", MESSAGE, *b"</th", CHANNEL, *b"ink>yes"])
    assert parts_of(answer) == ("so", "yes")


ANALYSIS = [CHANNEL, *b"analysis", MESSAGE, *b"so", CLOSE]
FINAL = [*b"assistant", CHANNEL, *b"final", MESSAGE, *b"yes"]


def test_markers_may_be_spelled_with_several_tokens_and_headers_between_them_are_hidden() -> None:
    assert parts_of(answer_to(choice(channels=HARMONY), [*ANALYSIS, *FINAL, END])) == ("so", "yes")


def test_a_control_token_that_may_be_part_of_a_marker_is_never_shown_by_itself() -> None:
    answer = answer_to(choice(channels=HARMONY), [*FINAL, CHANNEL, *b"other", MESSAGE, *b"more"])
    assert answer.text == "yesothermore"


def test_the_end_of_generation_is_no_marker_even_if_it_is_called_like_one() -> None:
    form = ChannelFormat((("<|eot|>", Channel.HIDDEN),))
    answer = answer_to(choice(channels=form, logprobs=OUTPUT), [*b"yes ", END])
    assert answer.text == "yes "
    assert answer.names[-1] == "<|eot|>"


def test_the_end_of_generation_is_a_marker_where_generation_goes_on() -> None:
    form = ChannelFormat((("<|eot|>", Channel.HIDDEN),))
    assert answer_to(choice(channels=form, ignore_eos=True), [*b"yes ", END, *b"no"]).text == "yes"


def test_a_stop_string_in_the_reasoning_does_not_end_it() -> None:
    answer = answer_to(choice(channels=THINK_FORMAT, stop=["stop"]), b"<think>stop</think>go stop now")
    assert parts_of(answer) == ("stop", "go ")
    assert answer.finish_reason is FinishReason.STOP


def test_what_is_held_for_a_stop_string_does_not_cut_a_marker_in_two() -> None:
    answer = answer_to(choice(channels=OPEN, stop=["</think>yes", "<"]), b"so</think>yes")
    assert parts_of(answer) == ("so", "yes")


def test_a_stop_string_that_begins_before_the_reasoning_does_not_end_behind_it() -> None:
    answer = answer_to(choice(channels=THINK_FORMAT, stop=["ab"]), b"a<think>so</think>b")
    assert parts_of(answer) == ("so", "ab")


def test_white_space_of_the_first_min_tokens_is_no_stop_string_though_it_waits() -> None:
    of = choice(channels=THINK_FORMAT, stop=["\n"], min_tokens=2)
    assert answer_to(of, b"a\nb\nc").text == "a\nb"


def test_filtered_reasoning_ends_the_choice() -> None:
    answer = answer_to(
        choice(channels=THINK_FORMAT), b"yes<think>so bad</think>no", content_filter=ContentFilter(["bad"])
    )
    assert parts_of(answer) == ("so ", "yes")
    assert answer.finish_reason is FinishReason.CONTENT_FILTER


def test_a_filtered_text_does_not_get_by_with_reasoning_in_its_midst() -> None:
    answer = answer_to(
        choice(channels=THINK_FORMAT), b"ba<think>so</think>d and more", content_filter=ContentFilter(["bad"])
    )
    assert parts_of(answer) == ("so", "ba")
    assert answer.finish_reason is FinishReason.CONTENT_FILTER


def test_reasoning_is_told_as_it_comes() -> None:
    events = events_of(choice(channels=THINK_FORMAT), [THINK, *b"so", *b"</think>", *b"yes"])
    assert [(event.reasoning, event.text) for event in events] == [
        ("s", ""),
        ("o", ""),
        ("", "y"),
        ("", "e"),
        ("", "s"),
    ]


def test_only_the_tokens_of_the_answer_have_entries() -> None:
    answer = answer_to(choice(channels=THINK_FORMAT, logprobs=OUTPUT), [THINK, *b"so", THINKING, *b"es", END])
    assert answer.text == "yes"
    assert answer.names == ["y", "e", "s", "<|eot|>"]
    assert answer.bytes == [b"y", b"e", b"s", None]
    assert [entry.offset for entry in answer.entries] == [0, 1, 2, 3]
    assert answer.num_tokens == 7


def test_a_control_token_between_reasoning_and_answer_belongs_to_the_answer() -> None:
    answer = answer_to(choice(channels=THINK_FORMAT, logprobs=OUTPUT), [THINK, MESSAGE, *b"</think>", MESSAGE, *b"yes"])
    assert answer.names == ["<|message|>", "y", "e", "s"]


def test_a_control_token_waits_only_for_the_text_before_it() -> None:
    events = events_of(choice(channels=THINK_FORMAT, logprobs=OUTPUT), [120, MESSAGE, 32, MESSAGE, 121])
    assert [[entry.token for entry in event.entries] for event in events] == [
        ["x"],
        ["<|message|>"],
        [" ", "<|message|>", "y"],
    ]


def test_a_broken_character_that_a_marker_interrupts_does_not_become_another_one() -> None:
    answer = answer_to(choice(channels=THINK_FORMAT, logprobs=OUTPUT), [0xF0, THINK, *b"</think>", 0x9F, 0x91, 0xA9])
    assert answer.text == "\ufffd" * 4
    assert answer.bytes == ["\ufffd".encode(), b"\x9f", b"\x91", b"\xa9"]
