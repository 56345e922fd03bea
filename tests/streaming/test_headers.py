"""Messages with headers: one to somebody else than the reader is hidden, and so is what is left of a header."""

from dataclasses import replace
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.channels import Channel, ChannelFormat
from octavo.prompting.chat_template import ChatTemplate
from octavo.prompting.reasoning import channel_format
from octavo.streaming.channels import Channels
from octavo.streaming.segment import Segment

ANSWER, REASONING, HIDDEN = Channel.ANSWER, Channel.REASONING, Channel.HIDDEN

HARMONY = channel_format(ChatTemplate("{# <|channel|>analysis<|message|> #}"), "<|start|>assistant")
MUSE = channel_format(ChatTemplate("{# to=self<|message|> #}"), "<|start|>assistant")
CONTROLS = ("<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>")
FINAL = "<|end|><|start|>assistant<|channel|>final<|message|>Done."


def divided(form: ChannelFormat, *texts: str, parts: tuple[str, ...] = CONTROLS) -> list[Segment]:
    machine = Channels(form, parts)
    segments = [*(segment for text in texts for segment in machine.push(text)), *machine.flush()]
    runs = groupby((segment for segment in segments if segment[1]), key=lambda segment: segment[0])
    return [(channel, "".join(text for _, text in run)) for channel, run in runs]


CALL_HEADERS = [
    " to=functions.f<|channel|>commentary<|message|>",
    " to=functions.f<|channel|>commentary <|constrain|>json<|message|>",
    " to=functions.f<|channel|>analysis<|message|>",
    " to=functions.f<|channel|>final<|message|>",
    "<|channel|>commentary to=functions.f<|message|>",
    "<|channel|>commentary to=functions.final<|message|>",
    "<|channel|>analysis to=functions.f code<|message|>",
]


@pytest.mark.parametrize("parts", [CONTROLS, ()], ids=["control tokens", "plain text"])
@pytest.mark.parametrize("header", CALL_HEADERS)
def test_what_is_to_a_function_is_hidden_with_its_header(header: str, parts: tuple[str, ...]) -> None:
    whole = divided(HARMONY, header + '{"a": 1}' + FINAL, parts=parts)
    assert whole == [(HIDDEN, header + '{"a": 1}' + FINAL.removesuffix("Done.")), (ANSWER, "Done.")]
    assert divided(HARMONY, *header, *'{"a": 1}', *FINAL, parts=()) == whole


@pytest.mark.parametrize("parts", [("<|start|>", "<|message|>", "<|eom|>"), ()], ids=["control tokens", "plain text"])
def test_a_recipient_that_is_neither_reader_nor_self_is_a_function(parts: tuple[str, ...]) -> None:
    call = " to=f<|message|>{}<|eom|><|start|>assistant"
    assert divided(MUSE, call + " to=user<|message|>Done.", parts=parts)[-1] == (ANSWER, "Done.")
    assert divided(MUSE, call + "<|message|>Done.", parts=parts)[-1] == (ANSWER, "Done.")
    assert divided(MUSE, call, parts=parts) == [(HIDDEN, call)]


def test_a_preamble_is_answer() -> None:
    text = "<|channel|>commentary<|message|>I look it up.<|end|><|start|>assistant to=functions.f"
    assert divided(HARMONY, text)[1] == (ANSWER, "I look it up.")
    assert divided(HARMONY, text)[2][0] is HIDDEN


@given(st.sampled_from(CALL_HEADERS), st.integers(0, 80))
def test_a_header_that_is_cut_is_hidden(header: str, length: int) -> None:
    text = header[:length]
    assert divided(HARMONY, text) in ([], [(HIDDEN, text)])


def test_what_is_left_of_a_marker_is_hidden_where_a_control_token_began_it() -> None:
    form = channel_format(ChatTemplate("{# <|open|> <|close|> <|sep|> #}"), "<|open|>response<|sep|>")
    controls = ("<|open|>", "<|close|>", "<|sep|>")
    assert divided(form, "Hi. <|close|>resp", parts=controls) == [(ANSWER, "Hi."), (HIDDEN, " <|close|>resp")]
    assert divided(form, "Hi. <|close|>resp", parts=()) == [(ANSWER, "Hi. <|close|>resp")]
    assert divided(form, "Hi.<|close|>other", parts=controls)[-1] == (ANSWER, "other")


@pytest.mark.parametrize("text", ['{"a": "<|end|>"}', '{"a": " <|channel|>analysis<|message|> "}'])
def test_what_spells_a_marker_is_text_of_an_answer_that_ends_the_text(text: str) -> None:
    form = replace(HARMONY, ends_in_answer=True)
    assert divided(form, "<|channel|>final<|message|>\n", text) == [
        (HIDDEN, "<|channel|>final<|message|>\n"),
        (ANSWER, text),
    ]
    assert divided(HARMONY, "<|channel|>final<|message|>\n", text)[1:] != [(ANSWER, text)]
