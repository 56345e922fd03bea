"""Tools and calls, from models that want to call and from models that want anything but that."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from api.calling import CLOCK, ONE_CALL, PARIS, TOOLS, TWO_CALLS, WEATHER, allowed, named, written
from conformance.ask import CHAT, Told, Wire, fold, told
from conformance.checks import conforms
from conformance.models import THINKING_TEMPLATE, GivenModel, babbling, saying
from conformance.served import Served, served
from support.checks import strict_json

ROOM = 6000
"""Tokens of a context for the words about tools, and for the arguments of a babbling model."""
CITY = {"city": "Paris"}
TURN = {
    "name": "turn",
    "parameters": {
        "type": "object",
        "properties": {"by": {"type": "integer", "minimum": 0, "maximum": 9}, "on": {"enum": ["left", "right"]}},
        "required": ["by"],
        "additionalProperties": False,
    },
}
NUMBERS = {
    "name": "sum",
    "parameters": {
        "type": "object",
        "properties": {"of": {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 3}},
        "required": ["of"],
        "additionalProperties": False,
    },
}
PRECISE = [{"type": "function", "function": function} for function in (TURN, NUMBERS, CLOCK)]
SCHEMAS = {
    **{function["name"]: function["parameters"] for function in (TURN, NUMBERS)},
    "get_time": {"type": "object", "maxProperties": 0},
}
OLDER = {"functions": [WEATHER, CLOCK]}
FORCED = [
    {"tool_choice": "required"},
    {"tool_choice": named("turn")},
    {"tool_choice": named("get_time")},
    {"tool_choice": allowed("required", "sum", "get_time")},
]
NINE_LETTERS_TEMPLATE = (
    "{% if tools %}[TOOLS]{{ tools | tojson }}{% endif %}"
    "{% for message in messages %}"
    "{% for call in message.tool_calls or [] %}"
    "{% if call.id | length != 9 %}{{ raise_exception('Tool call IDs should be nine characters long!') }}{% endif %}"
    "[CALL {{ call.id }} {{ call.function.name }} {{ call.function.arguments | tojson }}]"
    "{% endfor %}"
    "{% if message.role == 'tool' %}[RESULT {{ message.tool_call_id }} {{ message.content }}]"
    "{% else %}{{ message.content or '' }}{% endif %}"
    "{% endfor %}:"
)
"""As those of Mistral's models."""


def choosing(text: str, size: int = 5, **fields: Any) -> GivenModel:
    """A model that says this text, so many characters at a time."""
    return saying(*(text[i : i + size] for i in range(0, len(text), size)), context_length=ROOM, **fields)


def history(id: str) -> list[Wire]:
    call = {"id": id, "type": "function", "function": {"name": "get_weather", "arguments": PARIS}}
    return [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": "Sunny."},
    ]


async def prompt_of(server: Served, **fields: Any) -> str:
    """What the engine got, without control tokens."""
    response = await server.send(CHAT, max_tokens=0, **fields)
    assert response.status_code == 200, response.text
    return bytes(token for token in server.requests[-1].prompt_tokens if token < 256).decode()


def calls_in(answer: Told) -> list[tuple[str, Any]]:
    return [(call.name, call.given) for call in answer.calls]


def check_precise(answer: Told) -> None:
    """Calls and nothing else, each as its function wants it."""
    assert answer.finish_reason == "tool_calls"
    assert answer.text == ""
    assert answer.calls
    for name, arguments in calls_in(answer):
        Draft202012Validator(SCHEMAS[name]).validate(arguments)


def check_deltas(chunks: Sequence[Wire]) -> int:
    """Whether each delta of calls is as it should be; how many calls there are."""
    num_calls = 0
    for delta in [chunk["choices"][0]["delta"] for chunk in chunks]:
        for part in delta.get("tool_calls", ()):
            if "id" in part:
                assert set(part) == {"index", "id", "type", "function"}
                assert (part["index"], part["type"]) == (num_calls, "function")
                assert set(part["function"]) == {"name", "arguments"}
                num_calls += 1
            else:
                assert set(part) == {"index", "function"}
                assert part["index"] == num_calls - 1
                assert set(part["function"]) == {"arguments"}
    return num_calls


@conforms("tools", "stop", rows=(8,))
@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        (("So ", '<tool_call>\n{"na', 'me": "get_w', "STOP", "more"), 'So <tool_call>\n{"name": "get_w'),
        (("So <tool", "_cSTOPall>"), "So <tool_c"),
        (("```json\n{", '"name"', ' STOP: "x"}'), '```json\n{"name" '),
        (("Text. S", "TO", "STOP"), "Text. STO"),
    ],
    ids=repr,
)
async def test_what_was_held_back_as_a_call_is_text_where_a_stop_string_ends_the_answer(
    pieces: Sequence[str], said: str
) -> None:
    async with served(saying(*pieces, context_length=ROOM)) as server:
        answer = await server.told(CHAT, tools=TOOLS, stop=["STOP"])
    assert (answer.text, answer.calls, answer.finish_reason) == (said, (), "stop")


@conforms("tool_calls", "tools", "stream", rows=(76, 77))
@pytest.mark.parametrize("size", [2, 7, 1000])
async def test_a_streamed_call_begins_with_its_index_id_type_and_name_and_goes_on_with_arguments(size: int) -> None:
    async with served(choosing(f"So.\n{TWO_CALLS}", size)) as server:
        chunks = await server.chunks(CHAT, tools=TOOLS)
    assert check_deltas(chunks) == 2
    assert [call.name for call in fold(chunks).calls] == ["get_weather", "get_weather"]
    assert len({call.id for call in fold(chunks).calls}) == 2


@conforms("tool_calls", "tool_choice", "stream", rows=(76, 77))
@pytest.mark.parametrize("fields", FORCED, ids=str)
async def test_a_streamed_call_that_had_to_be_made_has_the_same_form(fields: Wire) -> None:
    async with served(babbling(context_length=ROOM)) as server:
        chunks = await server.chunks(CHAT, tools=PRECISE, temperature=1, seed=3, **fields)
    assert check_deltas(chunks) == len(fold(chunks).calls) > 0
    assert all(call.id for call in fold(chunks).calls)
    assert not any(chunk["choices"][0]["delta"].get("content") for chunk in chunks)


@conforms("messages", "tools", rows=(79,))
@pytest.mark.parametrize("id", ["call_abcdef0123456789", "abc123XYZ", "1", "toolu_é", "functions.f:0", "x" * 300])
async def test_a_call_in_the_history_may_have_any_id_whatever_the_template_demands(id: str) -> None:
    async with served(saying("x", template=NINE_LETTERS_TEMPLATE, context_length=ROOM)) as server:
        prompt = await prompt_of(server, messages=history(id), tools=TOOLS)
    shown = prompt.partition("[CALL ")[2][:9]
    assert f"[CALL {shown} get_weather {PARIS}][RESULT {shown} Sunny.]" in prompt
    assert shown.isascii()
    assert shown == id or len(id) != 9


@conforms("tool_choice", rows=(80,))
@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize(
    "model", [babbling(context_length=ROOM), choosing("I would rather not.")], ids=["babbling", "saying"]
)
async def test_a_named_function_is_called_once_whatever_the_model_would_rather_say(
    name: str, model: GivenModel
) -> None:
    async with served(model) as server:
        answer = await server.told(CHAT, tools=PRECISE, tool_choice=named(name))
    check_precise(answer)
    assert [call.name for call in answer.calls] == [name]


@conforms("tool_choice", "tools", "n", "seed", rows=(80, 85))
@pytest.mark.parametrize("fields", FORCED, ids=str)
async def test_calls_that_must_be_made_are_valid_under_the_schemas_of_their_functions(fields: Wire) -> None:
    fields = {"tools": PRECISE, "n": 3, "temperature": 1, "seed": 5, **fields}
    async with served(babbling(context_length=ROOM)) as server:
        answer = await server.answer(CHAT, **fields)
        chunks = await server.chunks(CHAT, **fields)
    for index in range(3):
        check_precise(told(answer, index))
        assert fold(chunks, index) == told(answer, index)
    assert all(choice["message"]["content"] is None for choice in answer["choices"])
    ids = [call.id for index in range(3) for call in told(answer, index).calls]
    assert len(set(ids)) == len(ids)


@conforms("tools", "tool_choice", rows=(82,))
async def test_a_model_whose_template_has_no_tools_is_told_of_them_all_the_same() -> None:
    async with served(choosing(ONE_CALL)) as server:
        prompt = await prompt_of(server, tools=TOOLS)
        without = await prompt_of(server, tools=TOOLS, tool_choice="none")
        called = await server.told(CHAT, tools=TOOLS)
    assert all(json.dumps(tool) in prompt for tool in TOOLS)
    assert "<tool_call>" in prompt
    assert "get_weather" not in without
    assert calls_in(called) == [("get_weather", CITY)]


@conforms("messages", "tools", rows=(82,))
@pytest.mark.parametrize("fields", [{}, {"tools": TOOLS}], ids=["without tools", "with tools"])
async def test_a_model_whose_template_has_no_tools_sees_the_calls_and_results_before(fields: Wire) -> None:
    async with served(saying("x", context_length=ROOM)) as server:
        prompt = await prompt_of(server, messages=history("call_1"), **fields)
    assert written("get_weather", PARIS) in prompt
    assert "Sunny." in prompt.partition(PARIS)[2]


@conforms("tool_choice", rows=(83,))
@pytest.mark.parametrize("choice", [{}, {"tool_choice": "auto"}, {"tool_choice": allowed("auto", "get_time")}], ids=str)
async def test_a_model_that_may_choose_may_answer_with_text(choice: Wire) -> None:
    async with served(choosing("It is four.")) as server:
        answer = await server.told(CHAT, tools=TOOLS, **choice)
    assert (answer.text, answer.calls, answer.finish_reason) == ("It is four.", (), "stop")


@conforms("finish_reason", "tool_calls", rows=(85,))
@pytest.mark.parametrize("size", [3, 1000])
@pytest.mark.parametrize(
    ("text", "said", "calls"),
    [
        (ONE_CALL, "", [CITY]),
        (f"Let me see.\n{ONE_CALL}", "Let me see.", [CITY]),
        (TWO_CALLS, "", [CITY, {"city": 'Nō-on "x"'}]),
        (f"```json\n{json.dumps({'name': 'get_weather', 'arguments': CITY})}\n```", "", [CITY]),
    ],
    ids=repr,
)
async def test_an_answer_with_calls_ends_because_of_them(text: str, said: str, calls: list[Any], size: int) -> None:
    async with served(choosing(text, size)) as server:
        answer = await server.told(CHAT, tools=TOOLS)
    assert (answer.text, answer.finish_reason) == (said, "tool_calls")
    assert calls_in(answer) == [("get_weather", arguments) for arguments in calls]


@conforms("finish_reason", "tool_calls", rows=(86,))
@pytest.mark.parametrize(
    "text",
    [
        "It is four.",
        ONE_CALL.replace("get_weather", "delete_all"),
        ONE_CALL.replace("}}", "]}"),
        "<tool_call>\n</tool_call>",
        '{"answer": 4}',
        "[]",
    ],
)
async def test_an_answer_without_calls_has_no_list_of_them_and_does_not_end_because_of_them(text: str) -> None:
    async with served(choosing(text)) as server:
        whole = await server.answer(CHAT, tools=TOOLS)
        chunks = await server.chunks(CHAT, tools=TOOLS)
    assert "tool_calls" not in whole["choices"][0]["message"]
    assert not any("tool_calls" in chunk["choices"][0]["delta"] for chunk in chunks)
    assert fold(chunks) == told(whole)
    assert (told(whole).text, told(whole).finish_reason) == (text, "stop")


@conforms("finish_reason", "max_tokens", "tools", rows=(88,))
@pytest.mark.parametrize("num_tokens", [1, 5, 9, 13])
async def test_an_answer_that_is_cut_within_a_call_says_length_and_keeps_its_text(num_tokens: int) -> None:
    async with served(choosing(ONE_CALL)) as server:
        answer = await server.told(CHAT, tools=TOOLS, max_tokens=num_tokens)
    assert answer.finish_reason == "length"
    assert (answer.text, answer.calls) == (ONE_CALL[: 5 * num_tokens], ())


@conforms("finish_reason", "max_tokens", "tool_choice", rows=(88,))
@pytest.mark.parametrize("num_tokens", [1, 20, 50, 60])
async def test_a_call_that_had_to_be_made_and_is_cut_says_length_and_is_the_beginning_of_the_whole(
    num_tokens: int,
) -> None:
    fields: Wire = {"tools": PRECISE, "tool_choice": named("turn")}
    async with served(babbling(context_length=ROOM)) as server:
        whole = await server.told(CHAT, **fields)
        cut = await server.told(CHAT, max_tokens=num_tokens, **fields)
    check_precise(whole)
    assert cut.finish_reason == "length"
    assert all(whole.calls[0].arguments.startswith(call.arguments) for call in cut.calls)
    assert [call.name for call in cut.calls] == ["turn"] * (num_tokens >= 50)


@conforms("finish_reason", "tool_calls", "stream", rows=(89,))
@pytest.mark.parametrize("choice", ["auto", "required"])
async def test_every_chunk_of_calls_but_the_last_has_the_finish_reason_null(choice: str) -> None:
    async with served(choosing(TWO_CALLS)) as server:
        *chunks, last = await server.chunks(CHAT, tools=TOOLS, tool_choice=choice)
    assert {chunk["choices"][0]["finish_reason"] for chunk in chunks} == {None}
    assert last["choices"][0]["finish_reason"] == "tool_calls"


@conforms("tool_choice", "tools")
async def test_nothing_is_a_call_where_none_may_be_made_or_where_there_are_no_tools() -> None:
    async with served(choosing(ONE_CALL)) as server:
        for fields in ({}, {"tools": []}, {"tools": TOOLS, "tool_choice": "none"}, {"tool_choice": "auto"}):
            answer = await server.told(CHAT, **fields)
            assert (answer.text, answer.calls, answer.finish_reason) == (ONE_CALL, (), "stop")


@conforms("tools", "tool_choice", "functions", "function_call", "error")
@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("tools", {"tools": [{"type": "function", "function": {"name": "a b"}}]}),
        ("tools", {"tools": [TOOLS[0], TOOLS[0]]}),
        ("tools", {"tools": [{"type": "function", "function": {"name": f"f{i}"}} for i in range(129)]}),
        ("tool_choice", {"tools": TOOLS, "tool_choice": named("unknown")}),
        ("tool_choice", {"tools": TOOLS, "tool_choice": "any"}),
        ("tool_choice", {"tool_choice": "required"}),
        ("functions", {**OLDER, "tools": TOOLS}),
        ("function_call", {**OLDER, "function_call": {"name": "unknown"}}),
        ("function_call", {**OLDER, "function_call": "required"}),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_what_cannot_be_called_is_refused(field: str, fields: Wire) -> None:
    async with served(saying("x")) as server:
        await server.refused(CHAT, 422, field, **fields)
        assert not server.requests


@conforms("tools", "tool_choice", "functions", "error", rows=(97,))
@pytest.mark.parametrize("parameters", [{"type": "nothing"}, {"properties": {"a": {"$ref": "https://example.org/x"}}}])
async def test_a_call_that_must_be_made_is_refused_where_its_arguments_cannot_be_promised(parameters: Wire) -> None:
    function = {"name": "f", "parameters": parameters}
    tools = {"tools": [{"type": "function", "function": function}], "tool_choice": "required"}
    async with served(saying("x", context_length=ROOM)) as server:
        error = await server.refused(CHAT, 422, "tools", **tools)
        await server.refused(CHAT, 422, "functions", functions=[function], function_call={"name": "f"})
        assert not server.requests
    assert error["code"] == "unsupported_grammar"


@conforms("parallel_tool_calls")
async def test_at_most_one_call_is_made_where_no_more_are_wanted() -> None:
    async with served(choosing(TWO_CALLS)) as server:
        for fields, number in (({}, 2), ({"parallel_tool_calls": True}, 2), ({"parallel_tool_calls": False}, 1)):
            answer = await server.told(CHAT, tools=TOOLS, **fields)
            assert calls_in(answer)[0] == ("get_weather", CITY)
            assert (len(answer.calls), answer.finish_reason) == (number, "tool_calls")
    async with served(babbling(context_length=ROOM)) as server:
        fields = {"tools": PRECISE, "tool_choice": "required", "parallel_tool_calls": False, "temperature": 1}
        for seed in range(4):
            answer = await server.told(CHAT, seed=seed, **fields)
            check_precise(answer)
            assert len(answer.calls) == 1


@conforms("tool_choice")
async def test_only_allowed_tools_can_be_called_though_all_are_shown() -> None:
    async with served(choosing(ONE_CALL)) as server:
        refused = await server.told(CHAT, tools=TOOLS, tool_choice=allowed("auto", "get_time"))
        prompt = await prompt_of(server, tools=TOOLS, tool_choice=allowed("auto", "get_time"))
        taken = await server.told(CHAT, tools=TOOLS, tool_choice=allowed("auto", "get_weather"))
    assert (refused.text, refused.calls) == (ONE_CALL, ())
    assert calls_in(taken) == [("get_weather", CITY)]
    assert "get_weather" in prompt
    assert "get_time" in prompt


@conforms("functions", "function_call", "finish_reason")
async def test_the_older_form_is_answered_in_the_older_form() -> None:
    async with served(choosing(f"So.\n{TWO_CALLS}")) as server:
        whole = await server.answer(CHAT, **OLDER)
        chunks = await server.chunks(CHAT, **OLDER)
        none = await server.told(CHAT, function_call="none", **OLDER)
    message = {"role": "assistant", "content": "So.", "function_call": {"name": "get_weather", "arguments": PARIS}}
    assert whole["choices"][0]["message"] == message
    deltas = [delta for chunk in chunks if "function_call" in (delta := chunk["choices"][0]["delta"])]
    assert [set(delta["function_call"]) for delta in deltas] == [{"name", "arguments"}, {"arguments"}]
    assert fold(chunks) == told(whole)
    assert told(whole).finish_reason == "function_call"
    assert (none.calls, none.finish_reason) == ((), "stop")


@conforms("functions", "function_call")
@pytest.mark.parametrize("name", ["turn", "sum"])
async def test_a_named_function_of_the_older_form_is_called_with_valid_arguments(name: str) -> None:
    async with served(babbling(context_length=ROOM)) as server:
        answer = await server.told(CHAT, functions=[TURN, NUMBERS], function_call={"name": name}, seed=2, temperature=1)
    [(called, arguments)] = calls_in(answer)
    assert (called, answer.text, answer.finish_reason) == (name, "", "function_call")
    Draft202012Validator(SCHEMAS[name]).validate(arguments)


@conforms("messages", "functions")
async def test_a_history_in_the_older_form_says_the_same_as_one_in_the_newer() -> None:
    function_call = {"name": "get_weather", "arguments": PARIS}
    older = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": None, "function_call": function_call},
        {"role": "function", "name": "get_weather", "content": "Sunny."},
    ]
    async with served(saying("x", context_length=ROOM)) as server:
        assert await prompt_of(server, messages=older, **OLDER) == await prompt_of(
            server, messages=history("call_1"), tools=TOOLS
        )


@conforms("tools", "reasoning_content", "logprobs")
async def test_calls_behind_reasoning_are_calls_and_no_text_of_them_shows_anywhere() -> None:
    model = choosing(f"<think>Shall I?</think>\n{ONE_CALL}", template=THINKING_TEMPLATE)
    async with served(model) as server:
        answer = await server.told(CHAT, tools=TOOLS, logprobs=True)
    assert (answer.reasoning, answer.text, answer.finish_reason) == ("Shall I?", "", "tool_calls")
    assert calls_in(answer) == [("get_weather", CITY)]


@conforms("tools", "stop")
async def test_a_stop_string_behind_a_call_leaves_the_call() -> None:
    async with served(choosing(f"{ONE_CALL}\nSTOP and more")) as server:
        answer = await server.told(CHAT, tools=TOOLS, stop="STOP")
    assert calls_in(answer) == [("get_weather", CITY)]
    assert (answer.text, answer.finish_reason) == ("", "tool_calls")


@conforms("response_format", "tools", "tool_choice")
async def test_beside_tools_an_answer_is_json_of_its_schema_or_a_call_and_a_call_alone_where_it_must_be() -> None:
    schema = {"type": "integer", "minimum": 0, "maximum": 99}
    fields: Wire = {"tools": TOOLS, "response_format": {"type": "json_object", "schema": schema}}
    async with served(choosing("17")) as server:
        assert strict_json((await server.told(CHAT, **fields)).text) == 17
    async with served(babbling(context_length=ROOM)) as server:
        forced = await server.told(CHAT, **fields, tool_choice="required", temperature=1, seed=1)
        assert forced.calls
        assert not forced.text
        for seed in range(6):
            answer = await server.told(CHAT, **fields, temperature=1, seed=seed)
            assert (answer.finish_reason == "tool_calls") == bool(answer.calls) == (not answer.text)
            assert answer.calls or 0 <= strict_json(answer.text) <= 99
