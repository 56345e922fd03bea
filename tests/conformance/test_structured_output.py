"""Answers that are what the request says, from models that know nothing of it."""

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from conformance.ask import CHAT, COMPLETIONS, Told, Wire, fold, told
from conformance.checks import conforms
from conformance.models import THINKING_TEMPLATE, GivenModel, babbling, constant, saying
from conformance.served import Served, served
from support.checks import strict_json

BOTH = pytest.mark.parametrize("path", [COMPLETIONS, CHAT])
ROOM = 6000
"""Tokens of a context in which also long strings of a babbling model end."""
POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer", "minimum": -9, "maximum": 99}, "on": {"type": "boolean"}},
    "required": ["x", "on"],
    "additionalProperties": False,
}
TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "colour": {"enum": ["red", "green"]},
        "node": {
            "type": "object",
            "properties": {
                "colour": {"$ref": "#/$defs/colour"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 2},
            },
            "required": ["colour", "children"],
            "additionalProperties": False,
        },
    },
}


def octoai(schema: Any) -> Wire:
    return {"type": "json_object", "schema": schema}


def openai(schema: Any, *, is_strict: bool = True) -> Wire:
    return {"type": "json_schema", "json_schema": {"name": "wanted", "schema": schema, "strict": is_strict}}


def logprobs(path: str) -> Wire:
    return {"logprobs": True, "top_logprobs": 2} if path == CHAT else {"logprobs": 2}


def check_valid(answer: Told, schema: Any) -> Any:
    """What the answer says, which is all of it."""
    assert answer.finish_reason == "stop"
    value = strict_json(answer.text)
    Draft202012Validator(schema).validate(value)
    return value


async def values_of(server: Served, path: str, schema: Any, num_seeds: int = 4) -> list[Any]:
    """What some answers say, streamed and not."""
    fields: Wire = {"response_format": octoai(schema), "temperature": 1, "max_tokens": ROOM}
    return [check_valid(await server.told(path, seed=seed, **fields), schema) for seed in range(num_seeds)]


@conforms("response_format", rows=(91,))
@BOTH
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": -3, "maximum": 12},
        {"type": "number", "minimum": 0.5, "exclusiveMaximum": 1},
        {"type": "integer", "minimum": 5, "maximum": 40, "multipleOf": 7},
        {"type": "array", "items": {"type": "integer", "minimum": 3, "maximum": 17}, "minItems": 2, "maxItems": 4},
        {"type": "array", "items": POINT, "minItems": 3, "maxItems": 3},
        {"type": "object", "propertyNames": {"maxLength": 3}, "minProperties": 1, "maxProperties": 2},
        {"type": "string", "minLength": 3, "maxLength": 5},
    ],
    ids=str,
)
async def test_bounds_of_numbers_arrays_objects_and_strings_are_kept(path: str, schema: Any) -> None:
    async with served(babbling(context_length=ROOM)) as server:
        await values_of(server, path, schema)
    async with served(constant({"9": 20, "[": 15, "1": 14, ",": 12, "0": 11, '"': 10})) as server:
        await values_of(server, path, schema, num_seeds=1)


@conforms("response_format", rows=(92,))
@BOTH
@pytest.mark.parametrize("wanted", ["abababab", "ab", "b" * 40, "xyz"])
async def test_a_pattern_and_lengths_are_kept_together(path: str, wanted: str) -> None:
    schema = {"type": "string", "pattern": "^(ab|b)+$", "minLength": 3, "maxLength": 5}
    async with served(saying(json.dumps(wanted))) as server:
        [value] = await values_of(server, path, schema, num_seeds=1)
    assert re.fullmatch("(ab|b)+", value)
    assert 3 <= len(value) <= 5


@conforms("response_format", rows=(94,))
@BOTH
@pytest.mark.parametrize(
    "schema",
    [
        TREE,
        {"$defs": {"e": {"enum": ["x", "y"]}}, "type": "array", "items": {"$ref": "#/$defs/e"}, "minItems": 1},
        {"definitions": {"p": POINT}, "type": "object", "properties": {"p": {"$ref": "#/definitions/p"}}},
        {"$defs": {"p": POINT}, "allOf": [{"$ref": "#/$defs/p"}, {"properties": {"x": {"minimum": 50}}}]},
    ],
    ids=lambda schema: str(schema)[:60],
)
async def test_references_within_a_schema_are_resolved(path: str, schema: Any) -> None:
    async with served(babbling(context_length=ROOM)) as server:
        await values_of(server, path, schema)


@conforms("response_format", rows=(95,))
@BOTH
async def test_an_answer_may_have_other_keys_where_its_schema_speaks_of_them_and_nowhere_else(path: str) -> None:
    silent = {"type": "object", "properties": {"a": {"type": "integer"}}}
    async with served(saying('{"b": "', 'c"}', context_length=ROOM)) as server:
        assert await values_of(server, path, {**silent, "additionalProperties": True}, 1) == [{"b": "c"}]
        for schema in (
            silent,
            {**silent, "additionalProperties": False},
            {**silent, "additionalProperties": {"type": "integer"}},
            {**silent, "propertyNames": {"enum": ["a"]}},
        ):
            assert {"b": "c"} not in await values_of(server, path, schema)


@conforms("response_format", rows=(95,))
@BOTH
async def test_exclusive_bounds_and_unique_items_are_kept(path: str) -> None:
    exclusive = {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 5}
    unique = {"type": "array", "items": {"enum": [1, 2, 3]}, "minItems": 3, "uniqueItems": True}
    async with served(babbling(context_length=ROOM)) as server:
        assert {*await values_of(server, path, exclusive)} == {4}
        assert all(sorted(value) == [1, 2, 3] for value in await values_of(server, path, unique, 8))


@conforms("response_format", "error", rows=(97,))
@BOTH
@pytest.mark.parametrize(
    ("response_format", "reason"),
    [
        (octoai({"properties": {"a": {"type": "nothing"}}}), "$.properties.a.type"),
        (octoai({"items": {"$ref": "https://example.org/schema"}}), "$.items.$ref"),
        (openai({"$ref": "#/$defs/missing"}), "$.$ref"),
        (openai({"anyOf": [{"pattern": "(?=a)b"}]}, is_strict=False), "$.anyOf[0].pattern"),
        (openai({"minItems": -1}), "$.minItems"),
        (octoai(False), "response_format"),
        ({"type": "regex", "pattern": "(a"}, "response_format"),
        ({"type": "regex", "pattern": r"(a)\1"}, "response_format"),
        ({"type": "grammar", "grammar": "start: nothing"}, "response_format"),
    ],
    ids=str,
)
async def test_what_cannot_be_kept_to_is_refused_with_its_place(path: str, response_format: Wire, reason: str) -> None:
    async with served(saying("Anything.")) as server:
        error = await server.refused(path, 422, "response_format", response_format=response_format)
        assert not server.requests
    assert error["code"] == "unsupported_grammar"
    assert reason in error["message"]


@conforms("response_format", rows=(97,))
@BOTH
@pytest.mark.parametrize(
    "schema",
    [
        {"not": {"type": ["object", "array", "string"]}},
        {"oneOf": [{"type": "integer", "maximum": 9}, {"type": "number", "minimum": 2, "maximum": 99}]},
        {
            "type": "object",
            "properties": {"a": {"enum": [1, 2]}, "b": {"type": "boolean"}},
            "if": {"properties": {"a": {"const": 1}}},
            "then": {"required": ["b"]},
            "else": {"maxProperties": 1},
        },
        {"type": "array", "contains": {"const": 1}, "items": {"enum": [1, 2]}, "maxItems": 3},
        {"properties": {"a": {"type": "null"}}, "dependentRequired": {"a": ["b"]}, "required": ["a"], "type": "object"},
        {"type": "object", "allOf": [{"properties": {"a": {"type": "null"}}}], "unevaluatedProperties": False},
        {"$dynamicRef": "#x", "$defs": {"x": {"$dynamicAnchor": "x", "type": "integer"}}},
        {"type": "object", "patternProperties": {"^a": {"type": "null"}}, "additionalProperties": False},
    ],
    ids=str,
)
async def test_a_difficult_schema_is_kept_to_or_refused_and_never_answered_with_something_else(
    path: str, schema: Any
) -> None:
    async with served(babbling(context_length=ROOM)) as server:
        response = await server.send(path, response_format=octoai(schema), max_tokens=0)
        if response.status_code == 200:
            await values_of(server, path, schema)
        else:
            await server.refused(path, 422, "response_format", response_format=octoai(schema))


@conforms("response_format", rows=(98,))
@BOTH
@pytest.mark.parametrize("schema", [{}, True], ids=str)
async def test_an_empty_schema_means_any_json_and_not_any_text(path: str, schema: Any) -> None:
    async with served(babbling(context_length=ROOM)) as server:
        assert len({type(value) for value in await values_of(server, path, schema, num_seeds=8)}) > 1
    for text in ("17", '"x"', "[1, null]", '{"a": true}'):
        async with served(saying(text)) as server:
            assert await values_of(server, path, schema, 1) == [json.loads(text)]


@conforms("response_format", rows=(98,))
@BOTH
@pytest.mark.parametrize("digits", ["0", "1", "-1", "1.0", "1e", "1.e-"])
@pytest.mark.parametrize("schema", [{}, {"type": "number"}, {"type": "integer"}], ids=str)
async def test_a_model_that_writes_nothing_but_digits_comes_to_an_end(path: str, digits: str, schema: Any) -> None:
    async with served(constant({digit: 20.0 - place for place, digit in enumerate(digits)})) as server:
        answer = await server.told(path, response_format=octoai(schema), max_tokens=400)
    assert isinstance(check_valid(answer, schema), int | float)


@conforms("response_format")
@BOTH
@pytest.mark.parametrize("spaces", [" ", "\n", "\t", "\n\t ", "\r\n"], ids=repr)
@pytest.mark.parametrize("response_format", [octoai(POINT), openai(TREE), {"type": "json_object"}], ids=str)
async def test_a_model_that_writes_nothing_but_white_space_comes_to_an_end(
    path: str, spaces: str, response_format: Wire
) -> None:
    logits: dict[str, float] = {space: 20.0 - place for place, space in enumerate(spaces)}
    async with served(constant({**logits, '"': 5, "]": 5, "}": 5, "0": 4})) as server:
        answer = await server.told(path, response_format=response_format, max_tokens=500)
    assert answer.finish_reason == "stop"
    assert strict_json(answer.text) is not None


@conforms("response_format", "max_tokens", "finish_reason", rows=(100,))
@BOTH
async def test_json_that_is_cut_says_so_and_is_the_beginning_of_what_it_would_have_been(path: str) -> None:
    async with served(babbling(context_length=ROOM)) as server:
        fields: Wire = {"response_format": octoai(TREE), "temperature": 1, "seed": 2}
        whole = await server.told(path, max_tokens=ROOM, **fields)
        cut = [await server.told(path, max_tokens=number, **fields) for number in (0, 1, 10, len(whole.text) - 1)]
    check_valid(whole, TREE)
    assert [answer.text for answer in cut] == [whole.text[:number] for number in (0, 1, 10, len(whole.text) - 1)]
    assert {answer.finish_reason for answer in cut} == {"length"}


@conforms("response_format", "n", "seed")
@BOTH
async def test_each_sample_keeps_to_the_schema_and_is_the_same_with_the_same_seed(path: str) -> None:
    fields: Wire = {"response_format": openai(POINT), "n": 5, "seed": 7, "temperature": 1, "max_tokens": ROOM}
    async with served(babbling(context_length=ROOM)) as server:
        answer = await server.answer(path, **fields)
        chunks = await server.chunks(path, **fields)
        other = await server.answer(path, **{**fields, "seed": 8})
    values = [check_valid(told(answer, index), POINT) for index in range(5)]
    assert [fold(chunks, index) for index in range(5)] == [told(answer, index) for index in range(5)]
    assert len({str(value) for value in values}) > 1
    assert [told(other, index) for index in range(5)] != [told(answer, index) for index in range(5)]


@conforms("response_format", "best_of", "prompt")
async def test_the_best_candidates_of_each_prompt_keep_to_the_schema() -> None:
    fields: Wire = {"prompt": ["A:", "B:"], "n": 2, "best_of": 4, "temperature": 1, "seed": 1, "max_tokens": ROOM}
    async with served(babbling(context_length=ROOM)) as server:
        answer = await server.answer(COMPLETIONS, response_format=octoai(POINT), **fields)
    for index in range(4):
        check_valid(told(answer, index), POINT)


@conforms("response_format", "logprobs")
@BOTH
async def test_log_probabilities_of_a_constrained_answer_are_the_models_own(path: str) -> None:
    async with served(babbling(context_length=ROOM)) as server:
        answer = await server.told(path, response_format=octoai(POINT), max_tokens=ROOM, **logprobs(path))
        known = list(server.requests[0].prompt_tokens)
    check_valid(answer, POINT)
    assert answer.entry_bytes.decode() == answer.text
    for entry in answer.entries:
        expected = server.model.logprobs(known)
        [token] = entry["bytes"]
        assert entry["logprob"] == pytest.approx(expected[token], abs=1e-4)
        assert entry["top_logprobs"][0]["logprob"] == pytest.approx(expected.max(), abs=1e-4)
        known.append(token)


@conforms("response_format", "stop")
@BOTH
async def test_a_stop_string_also_ends_an_answer_that_its_schema_would_let_go_on(path: str) -> None:
    async with served(babbling(context_length=ROOM)) as server:
        fields: Wire = {"response_format": octoai(POINT), "max_tokens": ROOM}
        whole = await server.told(path, **fields)
        stopped = await server.told(path, stop=["on", "nothing of it"], **fields)
    assert stopped.text == whole.text.partition("on")[0]
    assert stopped.finish_reason == "stop"


@conforms("response_format", "ignore_eos", "min_tokens", "logit_bias")
@BOTH
async def test_no_other_field_makes_an_answer_leave_its_schema(path: str) -> None:
    async with served(babbling(context_length=ROOM)) as server:
        for fields in (
            {"ignore_eos": True},
            {"min_tokens": 200},
            {"logit_bias": {str(ord("!")): 100}},
            {"logit_bias": {str(ord("{")): -100, str(ord("}")): -100}},
            {"top_k": 1, "top_p": 0.1, "temperature": 2},
            {"min_p": 1, "temperature": 2},
            {"frequency_penalty": 2, "presence_penalty": 2, "repetition_penalty": 5},
        ):
            answer = await server.told(path, response_format=octoai(POINT), seed=1, max_tokens=ROOM - 100, **fields)
            check_valid(answer, POINT)


@conforms("response_format", "echo")
async def test_an_echoed_prompt_is_no_part_of_what_the_schema_is_about() -> None:
    async with served(babbling(context_length=ROOM)) as server:
        answer = await server.told(COMPLETIONS, echo=True, response_format=octoai(POINT), max_tokens=ROOM)
    assert answer.text.startswith("Say:")
    Draft202012Validator(POINT).validate(strict_json(answer.text.removeprefix("Say:")))


@conforms("response_format", "reasoning_content")
@pytest.mark.parametrize("thought", [("<think>", 'Let me {"see', '": 1}.', "</think>", "\n\n"), ()], ids=str)
async def test_a_model_may_reason_as_it_likes_before_it_keeps_to_the_schema(thought: tuple[str, ...]) -> None:
    model = saying(*thought, '{"x": 4, "', 'on": true}', template=THINKING_TEMPLATE, context_length=ROOM)
    async with served(model) as server:
        answer = await server.told(CHAT, response_format=octoai(POINT))
    assert check_valid(answer, POINT) == {"x": 4, "on": True}
    assert answer.reasoning.strip() == "".join(thought[1:3])


@conforms("response_format")
@BOTH
@pytest.mark.parametrize(
    ("response_format", "pattern"),
    [
        ({"type": "regex", "pattern": "[a-c]{2,5}(é|/)"}, "[a-c]{2,5}(é|/)"),
        ({"type": "grammar", "grammar": 'start: "yes" | "no" num\nnum: /[0-9]{1,3}/'}, "yes|no[0-9]{1,3}"),
        ({"type": "grammar", "grammar": 'root ::= "a" [0-9] | "b"'}, "a[0-9]|b"),
    ],
    ids=str,
)
@pytest.mark.parametrize("model", [babbling(), saying("Sure: abcé")], ids=["babbling", "saying"])
async def test_an_answer_matches_the_regular_expression_or_the_grammar(
    path: str, response_format: Wire, pattern: str, model: GivenModel
) -> None:
    async with served(model) as server:
        for seed in range(3):
            answer = await server.told(path, response_format=response_format, seed=seed, temperature=1, max_tokens=99)
            assert answer.finish_reason == "stop"
            assert re.fullmatch(pattern, answer.text)
