"""Tools and calls, as a client sees them."""

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest
from llguidance import LLMatcher

from octavo.api.schemas.chat import ChatCompletionChunk, ChatCompletionResponse
from octavo.constraints import MAX_CALLS, calls_grammar
from octavo.constraints.library import small_tokenizer
from octavo.core.channels import PLAIN
from octavo.core.grammar import ANY_TEXT
from octavo.core.limits import Limits
from octavo.engine.scripted import ByteTokenizer
from octavo.engine.specs import ScriptedSpec
from octavo.service import ServedModel
from octavo.streaming.tool_formats.hermes import HERMES
from support.bad_inputs import CHAT
from support.checks import check_error

from .asking import ask, chat, complete, folded, folded_whole, post, stream
from .calling import CLOCK, CORE_TOOLS, ONE_CALL, PARIS, TOOLS, TWO_CALLS, WEATHER, allowed, named, told_calls
from .server import App, WatchedEngine, build, scripted

THINKING = "{% for message in messages %}{{ message.content }}{% endfor %}{# <think> </think> #}"
OLDER = {"functions": [WEATHER, CLOCK]}
CITY = {"city": "Paris"}
FORCED: list[dict[str, Any]] = [
    {"tools": TOOLS, "tool_choice": "required"},
    {"tools": TOOLS, "tool_choice": named("get_weather")},
    {**OLDER, "function_call": {"name": "get_weather"}},
]


def prompt_of(app: App) -> str:
    return bytes(app.engine.requests[-1].prompt_tokens).decode()


async def test_a_call_that_the_model_chose_to_make_is_told_apart_from_its_text() -> None:
    async with scripted(f"Let me see.\n{ONE_CALL}").client() as client:
        answer = await ask(client, CHAT, tools=TOOLS)
        chunks = await stream(client, CHAT, tools=TOOLS)
    [choice] = answer["choices"]
    [call] = choice["message"].pop("tool_calls")
    assert choice["message"] == {"role": "assistant", "content": "Let me see."}
    assert choice["finish_reason"] == "tool_calls"
    assert call["id"].startswith("call_")
    assert call == {"id": call["id"], "type": "function", "function": {"name": "get_weather", "arguments": PARIS}}
    ChatCompletionResponse.model_validate_json(json.dumps(answer | {"choices": [choice]}))
    assert folded(chunks)[0].text == "Let me see."
    assert told_calls(folded(chunks)[0].calls) == [("get_weather", CITY)]
    assert folded(chunks)[0].finish_reason == "tool_calls"


async def test_content_is_null_where_there_are_only_calls() -> None:
    async with scripted(ONE_CALL).client() as client:
        answer = await ask(client, CHAT, tools=TOOLS)
    assert answer["choices"][0]["message"]["content"] is None


async def test_an_answer_without_calls_does_not_name_them(client: httpx.AsyncClient) -> None:
    for fields in ({"tools": TOOLS}, OLDER, {"tools": TOOLS, "tool_choice": "none"}, {"tools": []}):
        [choice] = (await ask(client, CHAT, **fields))["choices"]
        assert choice["message"] == {"role": "assistant", "content": "The quick brown fox."}
        assert choice["finish_reason"] == "stop"


@pytest.mark.parametrize("piece_bytes", [1, 3, 1000])
async def test_each_call_of_a_stream_begins_with_its_name_and_goes_on_with_its_arguments(piece_bytes: int) -> None:
    async with scripted(TWO_CALLS, piece_bytes=piece_bytes).client() as client:
        *chunks, end = await stream(client, CHAT, tools=TOOLS)
    assert end == "[DONE]"
    for chunk in chunks:
        ChatCompletionChunk.model_validate_json(json.dumps(chunk))
    first, *deltas, last = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert first == {"role": "assistant", "content": ""}
    assert last == {}
    begun = 0
    for delta in deltas:
        assert set(delta) == {"tool_calls"}
        [call] = delta["tool_calls"]
        if "id" in call:
            assert call == {
                "index": begun,
                "id": call["id"],
                "type": "function",
                "function": {"name": "get_weather", "arguments": ""},
            }
            begun += 1
        else:
            assert set(call) == {"index", "function"}
            assert set(call["function"]) == {"arguments"}
            assert call["index"] == begun - 1
            assert call["function"]["arguments"]
    assert begun == 2


@pytest.mark.parametrize("piece_bytes", [1, 5])
async def test_each_sample_has_calls_of_its_own(piece_bytes: int) -> None:
    async with scripted(f"So: {TWO_CALLS}", piece_bytes=piece_bytes).client() as client:
        choices = [
            *folded(await stream(client, CHAT, tools=TOOLS, n=3)),
            *folded_whole(await ask(client, CHAT, tools=TOOLS, n=3)),
        ]
    assert all([name for name, _ in told_calls(choice.calls)] == ["get_weather"] * 2 for choice in choices)
    assert all(choice.text == "So:" and choice.finish_reason == "tool_calls" for choice in choices)
    ids = [id for choice in choices for id, _, _ in choice.calls]
    assert len(set(ids)) == len(ids) == 12


async def test_reasoning_logprobs_and_calls_are_told_in_one_stream() -> None:
    app = scripted(f"<think>hm</think>So. {TWO_CALLS}", piece_bytes=3)
    app.engine.chat_template = THINKING
    fields = {"tools": TOOLS, "logprobs": True, "top_logprobs": 2}
    async with app.client() as client:
        [streamed] = folded(await stream(client, CHAT, **fields))
        [whole] = folded_whole(await ask(client, CHAT, **fields))
    assert (streamed.text, streamed.reasoning, streamed.finish_reason) == ("So.", "hm", "tool_calls")
    assert told_calls(streamed.calls) == told_calls(whole.calls)
    assert len(streamed.calls) == 2
    assert streamed.logprobs == whole.logprobs
    assert b"".join(bytes(entry["bytes"] or b"") for entry in streamed.logprobs["content"]).decode() == "So."


@pytest.mark.parametrize("text", [ONE_CALL.replace("get_weather", "delete_all"), ONE_CALL.replace("{", "[")])
async def test_what_only_looks_like_a_call_is_text(text: str) -> None:
    async with scripted(text).client() as client:
        answer = await ask(client, CHAT, tools=TOOLS)
        assert folded(await stream(client, CHAT, tools=TOOLS)) == folded_whole(answer)
    [choice] = answer["choices"]
    assert choice["message"] == {"role": "assistant", "content": text}
    assert choice["finish_reason"] == "stop"


async def test_a_call_that_is_cut_ends_for_length() -> None:
    async with scripted(ONE_CALL, piece_bytes=1).client() as client:
        for fields in ({"tools": TOOLS}, {"tools": TOOLS, "tool_choice": "required"}, OLDER):
            answer = await ask(client, CHAT, max_tokens=len(ONE_CALL) - 30, **fields)
            assert answer["choices"][0]["finish_reason"] == "length"
            [streamed] = folded(await stream(client, CHAT, max_tokens=len(ONE_CALL) - 30, **fields))
            assert streamed.finish_reason == "length"


async def test_an_answer_ends_with_its_first_call_where_it_may_have_one() -> None:
    async with scripted(TWO_CALLS, piece_bytes=1).client() as client:
        for fields in (
            {"parallel_tool_calls": False},
            {"parallel_tool_calls": False, "tool_choice": allowed("auto", "get_weather")},
        ):
            [choice] = folded_whole(await ask(client, CHAT, tools=TOOLS, **fields))
            assert told_calls(choice.calls) == [("get_weather", CITY)]
            assert choice.finish_reason == "tool_calls"


async def test_the_prompt_shows_the_tools_unless_none_may_be_called(app: App, client: httpx.AsyncClient) -> None:
    app.engine.chat_template = "{{ tools | tojson if tools else 'no tools' }}"
    shown = [*TOOLS]
    for fields in ({}, {"tool_choice": "required"}, {"tool_choice": named("get_time")}, {"tool_choice": "auto"}):
        await ask(client, CHAT, tools=TOOLS, **fields)
        assert json.loads(prompt_of(app)) == shown
    for choice in (allowed("auto", "get_time"), allowed("required", "get_time")):
        await ask(client, CHAT, tools=TOOLS, tool_choice=choice)
        assert json.loads(prompt_of(app)) == shown
    await ask(client, CHAT, **OLDER)
    assert json.loads(prompt_of(app)) == shown
    for fields in ({}, {"tools": None}, {"tools": TOOLS, "tool_choice": "none"}, {**OLDER, "function_call": "none"}):
        await ask(client, CHAT, **fields)
        assert prompt_of(app) == "no tools"


async def test_the_prompt_shows_what_describes_a_function_and_no_more(app: App, client: httpx.AsyncClient) -> None:
    app.engine.chat_template = "{{ tools[0].function | tojson }}"
    function = {"strict": True, "parameters": {}, "description": None, "name": "f", "x": 1}
    response = await post(client, CHAT, tools=[{"type": "function", "function": function, "y": 1}])
    assert response.headers["x-octavo-ignored"] == "tools.y, tools.function.x"
    assert json.loads(prompt_of(app)) == {"name": "f", "parameters": {}}


@pytest.mark.parametrize("text", [ONE_CALL, TWO_CALLS])
async def test_nothing_is_a_call_where_none_may_be_made(text: str) -> None:
    async with scripted(text).client() as client:
        for fields in ({}, {"tools": TOOLS, "tool_choice": "none"}, {**OLDER, "function_call": "none"}):
            [choice] = folded_whole(await ask(client, CHAT, **fields))
            assert (choice.text, choice.calls, choice.finish_reason) == (text, [], "stop")


@pytest.mark.parametrize(
    ("fields", "tools", "max_calls"),
    [
        ({"tools": TOOLS, "tool_choice": "required"}, CORE_TOOLS, MAX_CALLS),
        ({"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": True}, CORE_TOOLS, MAX_CALLS),
        ({"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False}, CORE_TOOLS, 1),
        ({"tools": TOOLS, "tool_choice": named("get_time")}, CORE_TOOLS[1:], 1),
        ({"tools": TOOLS, "tool_choice": named("get_time"), "parallel_tool_calls": True}, CORE_TOOLS[1:], 1),
        ({"tools": TOOLS, "tool_choice": allowed("required", "get_weather")}, CORE_TOOLS[:1], MAX_CALLS),
        ({**OLDER, "function_call": {"name": "get_weather"}}, CORE_TOOLS[:1], 1),
    ],
)
async def test_a_call_that_must_be_made_is_a_constraint_on_the_answer(
    app: App, client: httpx.AsyncClient, fields: dict[str, Any], tools: Any, max_calls: int
) -> None:
    await ask(client, CHAT, n=2, **fields)
    grammar = calls_grammar(HERMES.syntax, tools, PLAIN, app.engine.tokenizer.vocabulary, max_calls=max_calls)
    assert [request.grammar for request in app.engine.requests] == [grammar, grammar]


async def test_a_model_that_may_choose_is_free_to_write_text(app: App, client: httpx.AsyncClient) -> None:
    choices = [{}, {"tool_choice": "auto"}, {"tool_choice": "none"}, {"tool_choice": allowed("auto", "get_time")}]
    for fields in choices:
        await ask(client, CHAT, tools=TOOLS, **fields)
    await ask(client, CHAT, **OLDER, function_call="auto")
    assert {request.grammar for request in app.engine.requests} == {ANY_TEXT}


async def test_only_the_allowed_tools_can_be_called() -> None:
    async with scripted(ONE_CALL).client() as client:
        [refused] = folded_whole(await ask(client, CHAT, tools=TOOLS, tool_choice=allowed("auto", "get_time")))
        [called] = folded_whole(await ask(client, CHAT, tools=TOOLS, tool_choice=allowed("auto", "get_weather")))
    assert (refused.text, refused.calls) == (ONE_CALL, [])
    assert told_calls(called.calls) == [("get_weather", CITY)]


@pytest.mark.parametrize("piece_bytes", [1, 1000])
async def test_the_arguments_of_a_forced_call_are_told_while_they_are_written(piece_bytes: int) -> None:
    app = scripted(ONE_CALL, piece_bytes=piece_bytes)
    fields = {"tools": TOOLS, "tool_choice": "required"}
    async with app.client() as client:
        [streamed] = folded(await stream(client, CHAT, **fields))
        [whole] = folded_whole(await ask(client, CHAT, **fields))
    assert streamed.calls[0][1:] == whole.calls[0][1:] == ["get_weather", PARIS]
    assert streamed.text == whole.text == ""
    assert streamed.finish_reason == whole.finish_reason == "tool_calls"
    assert len(streamed.reasons) > len(PARIS) or piece_bytes > 1


async def test_an_older_request_gets_an_answer_of_the_older_form() -> None:
    async with scripted(f"So:\n{TWO_CALLS}").client() as client:
        answer = await ask(client, CHAT, **OLDER)
        *chunks, _ = await stream(client, CHAT, **OLDER)
    [choice] = answer["choices"]
    call = {"name": "get_weather", "arguments": PARIS}
    assert choice["message"] == {"role": "assistant", "content": "So:", "function_call": call}
    assert choice["finish_reason"] == "function_call"
    ChatCompletionResponse.model_validate_json(json.dumps(answer))
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert [delta for delta in deltas if "function_call" in delta] == [
        {"function_call": {"name": "get_weather", "arguments": ""}},
        {"function_call": {"arguments": PARIS}},
    ]
    assert not any("tool_calls" in delta for delta in deltas)
    assert chunks[-1]["choices"][0]["finish_reason"] == "function_call"


async def test_fields_about_tools_are_not_known_where_nothing_can_be_called(client: httpx.AsyncClient) -> None:
    response = await complete(client, tools=TOOLS, tool_choice="required")
    assert response.headers["x-octavo-ignored"] == "tools, tool_choice"


async def test_the_limits_on_functions_are_those_of_the_server() -> None:
    app = build(WatchedEngine(ScriptedSpec()), limits=Limits(max_tools=1, max_schema=200, max_schema_depth=3))
    async with app.client() as client:
        assert await ask(client, CHAT, tools=TOOLS[:1])
        for field, given in (("tools", TOOLS), ("functions", [WEATHER, CLOCK])):
            message = check_error(await post(client, CHAT, **{field: given}), 422, field)["message"]
            assert "at most 1 functions (given 2)" in message
        for parameters in ({"const": "x" * 190}, {"a": {"b": {"c": {}}}}):
            function = {"name": "f", "parameters": parameters}
            check_error(await post(client, CHAT, functions=[function]), 422, "functions")
            tools = [{"type": "function", "function": function}]
            check_error(await post(client, CHAT, tools=tools, tool_choice="none"), 422, "tools")


async def test_the_schemas_of_all_functions_have_a_limit_together() -> None:
    functions = [{"name": name, "parameters": {"const": "x" * 88}} for name in "fgh"]  # of 100 bytes each
    async with build(WatchedEngine(ScriptedSpec()), limits=Limits(max_tools_size=200)).client() as client:
        assert await ask(client, CHAT, functions=functions[:2])
        body = check_error(await post(client, CHAT, functions=functions), 422, "functions")
    assert "at most 200 bytes in the schemas of all functions (given 300 or more)" in body["message"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "nothing"}}}]}, "tools"),
        ({"functions": [{"name": "f", "parameters": {"type": "nothing"}}]}, "functions"),
    ],
)
async def test_a_call_whose_arguments_cannot_be_promised_is_refused(
    app: App, client: httpx.AsyncClient, fields: dict[str, Any], param: str
) -> None:
    choice = {"tool_choice": "required"} if param == "tools" else {"function_call": {"name": "f"}}
    body = check_error(await post(client, CHAT, **fields, **choice), 422, param)
    assert body["code"] == "unsupported_grammar"
    assert body["message"].startswith(f"{param}: ")
    assert not app.engine.requests
    assert await ask(client, CHAT, **fields)


@pytest.mark.parametrize("forced", FORCED, ids=str)
async def test_a_form_of_the_answer_says_nothing_about_one_that_must_be_a_call(forced: dict[str, Any]) -> None:
    app = scripted(ONE_CALL)
    async with app.client() as client:
        plain = await ask(client, CHAT, **forced)
        formed = await ask(client, CHAT, response_format={"type": "json_object"}, **forced)
    assert formed["choices"][0]["message"]["content"] is None
    assert folded_whole(formed)[0].calls[0][1:] == folded_whole(plain)[0].calls[0][1:] == ["get_weather", PARIS]
    assert len({request.grammar for request in app.engine.requests}) == 1


async def test_a_form_of_the_answer_is_all_that_counts_where_nothing_may_be_called(
    app: App, client: httpx.AsyncClient
) -> None:
    form = {"response_format": {"type": "json_object"}}
    await ask(client, CHAT, **form)
    await ask(client, CHAT, tools=TOOLS, tool_choice="none", **form)
    assert len({request.grammar for request in app.engine.requests}) == 1
    await ask(client, CHAT, tools=TOOLS, response_format={"type": "text"})
    assert app.engine.requests[-1].grammar == ANY_TEXT


async def test_json_of_the_form_that_was_asked_for_is_no_call_though_it_looks_like_one() -> None:
    text = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
    async with scripted(text).client() as client:
        [called] = folded_whole(await ask(client, CHAT, tools=TOOLS))
        [told] = folded_whole(await ask(client, CHAT, tools=TOOLS, response_format={"type": "json_object"}))
    assert told_calls(called.calls) == [("get_weather", CITY)]
    assert (told.text, told.calls, told.finish_reason) == (text, [], "stop")


async def test_a_form_of_the_answer_beside_calls_that_may_be_made_allows_either(
    app: App, client: httpx.AsyncClient
) -> None:
    await ask(client, CHAT, tools=TOOLS, response_format={"type": "regex", "pattern": "yes|no"})
    matcher = LLMatcher(small_tokenizer(ByteTokenizer([]).vocabulary), app.engine.requests[-1].grammar.definition)
    for text in ("yes", ONE_CALL, TWO_CALLS):
        assert is_whole(matcher, text)
    for text in ("Yes", ONE_CALL.replace("city", "town"), f"yes\n{ONE_CALL}", "{}"):
        assert not is_whole(matcher, text)


def is_whole(matcher: LLMatcher, text: str) -> bool:
    """Whether the text is an answer that the grammar allows."""
    state, tokens = matcher.deep_copy(), list(text.encode())
    return state.try_consume_tokens(tokens) == len(tokens) and state.is_accepting()


async def test_the_older_form_answers_a_conversation_of_the_newer_one(client: httpx.AsyncClient) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": PARIS}}
    messages = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "Sunny."},
    ]
    assert (await chat(client, *messages, **OLDER)).status_code == 200
    assert (await chat(client, *messages, tools=TOOLS)).status_code == 200
    assert (await chat(client, *messages)).status_code == 200


@pytest.mark.parametrize(
    ("form", "field"),
    [({"tools": TOOLS}, "tools"), (OLDER, "functions"), (FORCED[0], "tools"), (FORCED[2], "functions")],
)
async def test_a_function_cannot_have_a_name_that_the_model_uses_otherwise(
    monkeypatch: pytest.MonkeyPatch, form: dict[str, Any], field: str
) -> None:
    taken = replace(HERMES, reserved_names=frozenset({"get_time"}))
    monkeypatch.setattr(ServedModel, "tool_format", taken)
    app = scripted()
    async with app.client() as client:
        body = check_error(await post(client, CHAT, **form), 400, field)
        assert body["code"] == "unsupported_by_model"
        assert body["message"].startswith(f"{field}: ")
        assert "get_time" in body["message"]
        assert not app.engine.requests
        none = {"tool_choice": "none"} if field == "tools" else {"function_call": "none"}
        assert await ask(client, CHAT, **{**form, **none})
