"""Events to answers and chunks."""

from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace

from octavo.api.assemble import AnswerAssembler, AnswerHead, AnswerShape, ChatShape, ChunkAssembler, CompletionShape
from octavo.api.calls import FunctionCallForm, ToolCallsForm
from octavo.api.logprobs import chat_logprobs, completion_logprobs, no_logprobs
from octavo.api.schemas.chat import ChatCompletionChunk, ChatCompletionResponse
from octavo.api.schemas.completions import CompletionResponse
from octavo.api.usage import UsageCounter
from octavo.core.output import Alternative, FinishReason, TextEvent
from octavo.core.tools import ToolCallDelta
from support.checks import strict_json

from .asking import folded, folded_whole
from .builders import answers, encoded, entry

HEAD = AnswerHead("id-1", 1_700_000_000, "demo", "fp")
SHAPES = {
    "completion": CompletionShape(no_logprobs),
    "completion with logprobs": CompletionShape(completion_logprobs),
    "chat": ChatShape(no_logprobs, ToolCallsForm()),
    "chat with logprobs": ChatShape(chat_logprobs, ToolCallsForm()),
}
OLDER = ChatShape(chat_logprobs, FunctionCallForm())
WORDS = [" the", " dog", "a", "ing", "漢", " understanding", "\n", "."]
WITH_LOGPROBS = ["completion with logprobs", "chat with logprobs"]


def counter() -> UsageCounter:
    return UsageCounter(num_prompt_tokens=5, n=1)


def chunks(events: list[TextEvent], shape: AnswerShape) -> list[dict[str, Any]]:
    assembler = ChunkAssembler(HEAD, shape, counter(), includes_usage=True)
    return data_of(b"".join([*map(assembler.push, events), assembler.flush()]))


def data_of(stream: bytes) -> list[dict[str, Any]]:
    """What the events of a stream hold."""
    *sent, rest = stream.split(b"\n\n")
    assert rest == b""
    return [strict_json(event.decode().removeprefix("data: ")) for event in sent]


def choices(events: list[TextEvent], shape: AnswerShape) -> list[dict[str, Any]]:
    return [chunk["choices"][0] for chunk in chunks(events, shape)[:-1]]


def answer(events: list[TextEvent], shape: AnswerShape) -> dict[str, Any]:
    whole: dict[str, Any] = strict_json(assembled(events, shape).flush().body.decode())
    return whole


def assembled(events: list[TextEvent], shape: AnswerShape) -> AnswerAssembler:
    assembler = AnswerAssembler(HEAD, shape, counter())
    for event in events:
        assembler.push(event)
    return assembler


@pytest.mark.parametrize("name", SHAPES)
@given(events=answers())
def test_a_stream_adds_up_to_the_whole_answer(name: str, events: list[TextEvent]) -> None:
    shape = SHAPES[name]
    whole = answer(events, shape)
    *streamed, last = chunks(events, shape)
    assert folded([*streamed, "[DONE]"]) == folded_whole(whole)
    assert last["usage"] == whole["usage"]


@pytest.mark.parametrize("name", SHAPES)
@given(events=answers())
def test_a_whole_answer_is_json_without_white_space(name: str, events: list[TextEvent]) -> None:
    body = assembled(events, SHAPES[name]).flush().body
    assert body == encoded(strict_json(body.decode())).encode()


@pytest.mark.parametrize("name", WITH_LOGPROBS)
def test_the_size_of_an_answer_is_about_known_before_it_is_made(name: str) -> None:
    top = tuple(Alternative(word, word.encode(), -12.345678901234567) for word in WORDS)
    entries = tuple(entry(word, -1.2345678901234567, top=top, offset=1000) for word in WORDS)
    event = TextEvent(0, "".join(WORDS), 20, entries=entries)
    assembler = assembled([*[event] * 19, replace(event, finish_reason=FinishReason.STOP)], SHAPES[name])
    assert 0.6 < assembler.size / len(assembler.flush().body) < 1.6


@pytest.mark.parametrize("name", SHAPES)
@given(events=answers())
def test_a_chunk_that_only_adds_text_is_the_one_that_the_shape_makes_of_its_event(
    name: str, events: list[TextEvent]
) -> None:
    shape = SHAPES[name]
    for event in filter(lambda event: event.is_only_text, events):
        assert shape.chunk_choices(event, is_first=False) == [shape.text_choice(event.index, event.text)]


def test_usage_is_null_in_the_chunks_before_the_one_that_tells_it_and_absent_where_it_is_not_asked_for() -> None:
    events = [TextEvent(0, "a", 1), TextEvent(0, "b", 1, FinishReason.LENGTH)]
    *before, last = chunks(events, SHAPES["completion"])
    assert [chunk["usage"] for chunk in before] == [None, None]
    assert last["usage"]["completion_tokens"] == 2
    silent = ChunkAssembler(HEAD, SHAPES["completion"], counter(), includes_usage=False)
    assert not any("usage" in chunk for event in events for chunk in data_of(silent.push(event)))
    assert silent.flush() == b""


@pytest.mark.parametrize("name", SHAPES)
@given(events=answers())
def test_answers_and_chunks_are_what_the_schemas_document(name: str, events: list[TextEvent]) -> None:
    is_chat = name.startswith("chat")
    (ChatCompletionResponse if is_chat else CompletionResponse).model_validate_json(
        encoded(answer(events, SHAPES[name]))
    )
    for chunk in chunks(events, SHAPES[name]):
        (ChatCompletionChunk if is_chat else CompletionResponse).model_validate_json(encoded(chunk))


@given(events=answers())
def test_a_stream_of_the_older_form_adds_up_to_the_whole_answer(events: list[TextEvent]) -> None:
    whole = answer(events, OLDER)
    *streamed, _ = chunks(events, OLDER)
    assert folded([*streamed, "[DONE]"]) == folded_whole(whole)
    ChatCompletionResponse.model_validate_json(encoded(whole))
    for chunk in streamed:
        ChatCompletionChunk.model_validate_json(encoded(chunk))
    assert not any("tool_calls" in choice["message"] for choice in whole["choices"])


@pytest.mark.parametrize("name", ["completion", "chat"])
@given(events=answers())
def test_who_does_not_ask_for_logprobs_sees_null_and_no_empty_chunk(name: str, events: list[TextEvent]) -> None:
    assert all(choice["logprobs"] is None for choice in answer(events, SHAPES[name])["choices"])
    for choice in choices(events, SHAPES[name]):
        assert choice["logprobs"] is None
        assert choice["finish_reason"] or choice.get("text") or any(choice.get("delta", {}).values())


@pytest.mark.parametrize("name", WITH_LOGPROBS)
def test_entries_without_text_have_a_chunk(name: str) -> None:
    head = TextEvent(0, "", 0, entries=(entry("a", -1.0), entry("b", -2.0)))
    [*_, chunk] = choices([head], SHAPES[name])
    assert [item["token"] for item in chunk["logprobs"]["content"]] == ["a", "b"]
    assert chunk["finish_reason"] is None


@pytest.mark.parametrize("name", WITH_LOGPROBS)
def test_entries_come_with_their_text_and_those_of_the_end_are_not_lost(name: str) -> None:
    text = TextEvent(0, "a", 1, entries=(entry("a", -1.0, offset=0),))
    end = TextEvent(0, "b", 2, FinishReason.STOP, entries=(entry("b", -2.0, offset=1), entry("<|end|>", -3.0)))
    told = {
        choice.get("text", choice.get("delta", {}).get("content")): [
            item["token"] for item in choice["logprobs"]["content"]
        ]
        for choice in choices([text, end], SHAPES[name])
        if choice["logprobs"] is not None
    }
    assert told == {"a": ["a"], "b": ["b", "<|end|>"]}


def test_a_chunk_without_tokens_has_no_logprobs() -> None:
    end = TextEvent(0, "", 1, FinishReason.LENGTH)
    assert [choice["logprobs"] for choice in choices([end], SHAPES["completion with logprobs"])] == [None]
    assert [choice["logprobs"] for choice in choices([end], SHAPES["chat with logprobs"])] == [None, None]


def test_reasoning_has_two_names_and_is_never_content() -> None:
    events = [TextEvent(0, "", 1, reasoning="hm"), TextEvent(0, "so", 1, FinishReason.STOP, reasoning="mm")]
    [choice] = answer(events, SHAPES["chat"])["choices"]
    assert choice["message"] == {
        "role": "assistant",
        "content": "so",
        "reasoning_content": "hmmm",
        "reasoning": "hmmm",
    }
    assert [choice["delta"] for choice in choices(events, SHAPES["chat"])] == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "hm", "reasoning": "hm"},
        {"reasoning_content": "mm", "reasoning": "mm"},
        {"content": "so"},
        {},
    ]


def test_an_answer_without_reasoning_does_not_name_it() -> None:
    [choice] = answer([TextEvent(0, "so", 1, FinishReason.STOP)], SHAPES["chat"])["choices"]
    assert choice["message"] == {"role": "assistant", "content": "so"}


CALLED = [
    TextEvent(0, "", 1, reasoning="hm", tool_calls=(ToolCallDelta(0, "a", "f", ""), ToolCallDelta(0, "", "", "{"))),
    TextEvent(0, "", 1, FinishReason.TOOL_CALLS, tool_calls=(ToolCallDelta(0, "", "", "}"),)),
]


def test_content_is_null_only_where_something_is_called_and_nothing_said() -> None:
    for shape in (SHAPES["chat"], OLDER):
        assert answer(CALLED, shape)["choices"][0]["message"]["content"] is None
        said = [TextEvent(0, "so", 1), *CALLED]
        assert answer(said, shape)["choices"][0]["message"]["content"] == "so"
        silent = [TextEvent(0, "", 1, FinishReason.STOP)]
        assert answer(silent, shape)["choices"][0]["message"] == {"role": "assistant", "content": ""}


def test_each_delta_says_one_thing_and_a_call_is_named_once() -> None:
    assert [choice["delta"] for choice in choices(CALLED, SHAPES["chat"])] == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "hm", "reasoning": "hm"},
        {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]},
        {},
    ]


@pytest.mark.parametrize("reason", FinishReason)
def test_only_the_end_by_a_call_has_another_name_in_the_older_form(reason: FinishReason) -> None:
    events = [TextEvent(0, "so", 1, reason)]
    older = FinishReason.FUNCTION_CALL if reason is FinishReason.TOOL_CALLS else reason
    assert answer(events, SHAPES["chat"])["choices"][0]["finish_reason"] == reason
    assert answer(events, OLDER)["choices"][0]["finish_reason"] == choices(events, OLDER)[-1]["finish_reason"] == older


def test_the_older_form_tells_the_first_call_and_has_no_place_for_others() -> None:
    second = (ToolCallDelta(1, "b", "g", ""), ToolCallDelta(1, "", "", "{}"))
    events = [*CALLED[:1], replace(CALLED[1], tool_calls=(*CALLED[1].tool_calls, *second))]
    told = {"function_call": {"name": "f", "arguments": "{}"}}
    assert answer(events, OLDER)["choices"][0]["message"].items() >= told.items()
    assert choices(events, OLDER) == choices(CALLED, OLDER)
