"""Reports added on a second pass."""

import asyncio
from itertools import permutations
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from api.calling import ONE_CALL, TOOLS
from conformance.ask import CHAT, COMPLETIONS, Wire, fold, told
from conformance.checks import conforms
from conformance.models import GivenModel, babbling, saying
from conformance.served import served
from support.checks import strict_json

BOTH = pytest.mark.parametrize("path", [COMPLETIONS, CHAT])
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}


@conforms("response_format", rows=(125,))
@BOTH
@pytest.mark.parametrize(
    "response_format",
    [
        {"type": "json_object", "schema": SCHEMA},
        {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}},
        {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": False}},
        {"type": "json_schema", "json_schema": {"schema": SCHEMA}},
    ],
    ids=str,
)
async def test_a_schema_is_kept_to_in_whichever_shape_it_is_given(path: str, response_format: Wire) -> None:
    async with served(saying("Sure! Here is your JSON.")) as server:
        answer = await server.told(path, response_format=response_format, max_tokens=200)
        free = await server.told(path, response_format={"type": "text"})
    assert answer.finish_reason == "stop"
    Draft202012Validator(SCHEMA).validate(strict_json(answer.text))
    assert free.text == "Sure! Here is your JSON."


@conforms("stop", rows=(127,))
@pytest.mark.parametrize("stops", list(permutations([">>>>>>> UPDATED", ">>>>>>> UPDATED\n"])), ids=repr)
@pytest.mark.parametrize(
    "pieces",
    [
        ("code\n", ">>>>", ">>> UPD", "ATED", "\n", "more"),
        ("code\n", ">>>>>>> UPDATED\nmore"),
        ("code\n", ">>>>>>> UPDATED"),
    ],
    ids=repr,
)
async def test_one_stop_string_may_begin_with_another(stops: tuple[str, ...], pieces: tuple[str, ...]) -> None:
    async with served(saying(*pieces)) as server:
        answer = await server.told(COMPLETIONS, stop=list(stops))
    assert (answer.text, answer.finish_reason) == ("code\n", "stop")


@conforms("logprobs", "top_logprobs", "stream", "tools", "tool_choice", rows=(128,))
@pytest.mark.parametrize(
    "tools",
    [
        {"tools": []},
        {"tools": [], "tool_choice": "none"},
        {"tool_choice": "auto"},
        {"tools": TOOLS},
        {"tools": TOOLS, "tool_choice": "none"},
    ],
    ids=lambda tools: str(tools)[:40],
)
async def test_a_stream_may_have_log_probabilities_beside_the_fields_of_tools(tools: Wire) -> None:
    async with served(saying("AB", "CD", context_length=2000)) as server:
        answer = await server.told(CHAT, logprobs=True, top_logprobs=2, **tools)
    assert answer.tokens == ["AB", "CD", "<|end|>"]
    assert [len(entry["top_logprobs"]) for entry in answer.entries] == [2, 2, 2]


@conforms("logprobs", "tool_calls", "tool_choice", rows=(128,))
@pytest.mark.parametrize(
    ("choice", "model"),
    [("auto", saying(ONE_CALL, context_length=2000)), ("required", babbling(context_length=2000))],
    ids=["auto", "required"],
)
async def test_calls_may_be_streamed_beside_log_probabilities(choice: str, model: GivenModel) -> None:
    async with served(model) as server:
        answer = await server.told(CHAT, logprobs=True, top_logprobs=2, tools=TOOLS, tool_choice=choice)
    assert answer.finish_reason == "tool_calls"
    assert {call.name for call in answer.calls} <= {"get_weather", "get_time"}
    assert answer.calls


@conforms("n", "choices", rows=(130,))
@BOTH
async def test_many_requests_at_a_time_all_have_all_their_choices(path: str) -> None:
    async with served(babbling(num_slots=8)) as server:
        fields: Wire = {"n": 4, "max_tokens": 5, "temperature": 1}
        alone = [await server.answer(path, seed=seed, **fields) for seed in range(4)]
        asked = [
            asyncio.gather(server.answer(path, seed=s, **fields), server.chunks(path, seed=s, **fields))
            for s in range(4)
        ]
        answers = await asyncio.wait_for(asyncio.gather(*asked), 30)
    for expected, (whole, chunks) in zip(alone, answers, strict=True):
        assert whole["choices"] == expected["choices"]
        assert [fold(chunks, index) for index in range(4)] == [told(expected, index) for index in range(4)]


@conforms("max_tokens", "finish_reason", rows=(131,))
@BOTH
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"max_tokens": 1}, "length"),
        ({"max_tokens": 2}, "length"),
        ({"max_tokens": 3}, "stop"),
        ({"max_tokens": 20}, "stop"),
        ({"max_tokens": 20, "stop": "D"}, "stop"),
        ({"max_tokens": 20, "ignore_eos": True}, "length"),
    ],
    ids=str,
)
async def test_an_answer_cut_by_max_tokens_says_length_and_no_other_does(path: str, fields: Any, reason: str) -> None:
    async with served(saying("AB", "CD")) as server:
        assert (await server.told(path, **fields)).finish_reason == reason
