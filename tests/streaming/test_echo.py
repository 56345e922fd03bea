"""An answer may begin with the prompt's text, and then does so to the byte."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.output import FinishReason, TokenChunk, TokenLogprob
from octavo.core.request import LogprobParams
from octavo.streaming import ChoiceStream, ContentFilter
from streaming.builders import (
    ALL_LOGPROBS,
    BOS,
    MESSAGE,
    SPACED,
    THINK_FORMAT,
    VOCABULARY,
    Answer,
    answer_to,
    choice,
    events_of,
    folded,
)

JA = "日".encode()


def listed(answer: Answer) -> list[tuple[str, bytes | None, float | None, int | None]]:
    return [(entry.token, entry.bytes, entry.logprob, entry.offset) for entry in answer.entries]


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ([*b"hi"], "hi"),
        ([BOS, *b"hi"], "hi"),
        ([*b"hi", BOS], "hi<s>"),
        ([BOS, BOS, *b"hi"], "<s>hi"),
        ([MESSAGE, *b"hi"], "<|message|>hi"),
        ([BOS, SPACED], "a"),
        ([BOS, SPACED, SPACED], "a a"),
        ([MESSAGE, SPACED], "<|message|>a"),
        ([*b" ", SPACED], " a"),
        ([*b"  hi"], " hi"),
        ([BOS], ""),
    ],
)
@pytest.mark.parametrize("logprobs", [LogprobParams(), LogprobParams(of_output=True), ALL_LOGPROBS])
def test_the_answer_begins_with_the_prompts_text(prompt: list[int], text: str, logprobs: LogprobParams) -> None:
    assert answer_to(choice(prompt=prompt, echo=True, logprobs=logprobs), b"!").text == text + "!"


@pytest.mark.parametrize(("prompt", "text"), [([BOS, *b"hi"], "<s>hi"), ([BOS], "")])
def test_a_token_that_no_tokenizer_put_there_is_part_of_the_text_unless_it_stands_for_none(
    prompt: list[int], text: str
) -> None:
    stream = ChoiceStream(choice(prompt=prompt, echo=True), replace(VOCABULARY, adds_bos=False))
    assert stream.end(FinishReason.LENGTH).text == text


def test_the_first_event_has_the_prompts_text_where_its_entries_are_not_asked_for() -> None:
    stream = ChoiceStream(choice(prompt=b"hi", echo=True), VOCABULARY)
    events = [stream.push(TokenChunk((token,))) for token in b"yes"]
    assert [event and event.text for event in events] == ["hiy", "e", "s"]


def test_a_prompt_may_be_all_there_is() -> None:
    events = events_of(choice(prompt=b"hi", echo=True), [])
    assert [(event.text, event.num_tokens, event.finish_reason) for event in events] == [("hi", 0, FinishReason.LENGTH)]


def test_the_prompts_text_comes_as_its_entries_do() -> None:
    stream = ChoiceStream(choice(prompt=b"hello", echo=True, logprobs=ALL_LOGPROBS), VOCABULARY)
    scores = [TokenLogprob(token, -1.0) for token in b"ello"]
    texts = [stream.push(TokenChunk((), prompt_logprobs=tuple(part))) for part in (scores[:2], scores[2:3], scores[3:])]
    assert [event and event.text for event in texts] == ["hel", "l", "o"]
    assert [event and len(event.entries) for event in texts] == [3, 1, 1]
    last = stream.push(TokenChunk((), FinishReason.LENGTH))
    assert last is not None
    assert (last.text, last.entries) == ("", ())


def test_every_token_of_an_echoed_prompt_has_an_entry_the_first_without_a_logprob() -> None:
    answer = answer_to(choice(prompt=[BOS, SPACED, 120], echo=True, logprobs=ALL_LOGPROBS), b"y")
    assert listed(answer) == [
        ("<s>", None, None, 0),
        (" a", b"a", -0.0, 0),
        ("x", b"x", -1 / 16, 1),
        ("y", b"y", -0.0, 2),
    ]
    assert answer.num_tokens == 1
    assert answer.logprob_sum == 0.0


def test_control_tokens_of_an_echoed_prompt_have_their_names_as_text() -> None:
    answer = answer_to(choice(prompt=[120, MESSAGE], echo=True, logprobs=ALL_LOGPROBS), b"y")
    assert answer.text == "x<|message|>y"
    assert answer.bytes == [b"x", b"<|message|>", b"y"]


def test_places_in_the_text_count_an_echoed_prompt_without_entries() -> None:
    of = choice(prompt=b"hello", echo=True, logprobs=LogprobParams(of_output=True))
    assert listed(answer_to(of, b"y")) == [("y", b"y", -0.0, 5)]


def test_only_the_prompts_tokens_may_be_listed() -> None:
    of = choice(prompt=b"hi", echo=True, logprobs=LogprobParams(of_prompt=True))
    answer = answer_to(of, b"yes")
    assert (answer.text, answer.names) == ("hiyes", ["h", "i"])


@given(st.integers(0, 3), st.sampled_from([LogprobParams(), LogprobParams(True), ALL_LOGPROBS]))
def test_a_character_split_between_prompt_and_answer_comes_out_whole(cut: int, logprobs: LogprobParams) -> None:
    answer = answer_to(choice(prompt=[120, *JA[:cut]], echo=True, logprobs=logprobs), [*JA[cut:], 121])
    assert answer.text == "x日y"


def test_the_entries_of_a_character_split_between_prompt_and_answer_come_together() -> None:
    events = events_of(choice(prompt=[120, *JA[:2]], echo=True, logprobs=ALL_LOGPROBS), [JA[2], 121])
    assert [(event.text, [entry.bytes for entry in event.entries]) for event in events] == [
        ("x", [b"x"]),
        ("日", [b"\xe6", b"\x97", b"\xa5"]),
        ("y", [b"y"]),
    ]


def test_stop_strings_and_filters_see_generated_text_only() -> None:
    of = choice(prompt=b"stop bad ba", echo=True, stop=["stop"])
    answer = answer_to(of, b"d stop", content_filter=ContentFilter(["bad"]))
    assert (answer.text, answer.finish_reason) == ("stop bad bad ", FinishReason.STOP)


def test_markers_are_looked_for_in_generated_text_only() -> None:
    of = choice(prompt=b"<think> hi <th", echo=True, channels=THINK_FORMAT, logprobs=ALL_LOGPROBS)
    answer = answer_to(of, b"ink><think>so</think>yes")
    assert (answer.text, answer.reasoning) == ("<think> hi <think>yes", "so")


def test_a_choice_ended_before_it_began_has_its_prompt_if_no_entries_are_missing() -> None:
    assert ChoiceStream(choice(prompt=b"hi", echo=True), VOCABULARY).end(FinishReason.CANCELLED).text == "hi"
    stream = ChoiceStream(choice(prompt=b"hi", echo=True, logprobs=ALL_LOGPROBS), VOCABULARY)
    ended = folded([stream.end(FinishReason.CANCELLED)])
    assert (ended.text, listed(ended)) == ("h", [("h", b"h", None, 0)])
