"""What an answer is allowed to be, from the wire to the engine."""

from typing import Any

import httpx
import pytest

from octavo.constraints import Part, answer_grammar, any_object_part, grammar_part, regex_part, schema_part
from octavo.core.channels import PLAIN
from octavo.core.grammar import ANY_TEXT
from octavo.core.limits import Limits
from octavo.engine.specs import ScriptedSpec
from octavo.prompting import ChatTemplate
from octavo.prompting.reasoning import channel_format
from support.bad_inputs import CHAT, COMPLETIONS
from support.checks import check_error

from .asking import BASES, ask, folded, folded_whole, post, stream
from .server import App, WatchedEngine, build, scripted

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
THINKING = "{% for message in messages %}{{ message.content }}{% endfor %}{# <think> </think> #}"
LARK, GBNF = "start: /[ab]+/", 'root ::= "a" | "b"'
FORMATS: list[tuple[dict[str, Any], Part]] = [
    ({"type": "json_object"}, any_object_part()),
    ({"type": "json_object", "schema": None}, any_object_part()),
    ({"type": "json_object", "schema": SCHEMA}, schema_part(SCHEMA)),
    ({"type": "json_object", "schema": True}, schema_part(True)),
    ({"type": "json_object", "schema": {}}, schema_part({})),
    ({"type": "json_schema", "json_schema": {"schema": SCHEMA}}, schema_part(SCHEMA)),
    ({"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}}, schema_part(SCHEMA)),
    ({"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": False}}, schema_part(SCHEMA)),
    (
        {"type": "json_schema", "json_schema": {"name": "x", "description": "y", "strict": None, "schema": True}},
        schema_part(True),
    ),
    ({"type": "regex", "pattern": "[ab]+|é/"}, regex_part("[ab]+|é/")),
    ({"type": "grammar", "grammar": LARK}, grammar_part(LARK)),
    ({"type": "grammar", "grammar": GBNF}, grammar_part(GBNF)),
]


@pytest.mark.parametrize("path", BASES)
@pytest.mark.parametrize(("response_format", "part"), FORMATS, ids=[str(form) for form, _ in FORMATS])
async def test_the_form_of_an_answer_is_a_constraint_on_every_choice(
    app: App, client: httpx.AsyncClient, path: str, response_format: dict[str, Any], part: Part
) -> None:
    fields = {"response_format": response_format, "n": 2, "stop": "x", "seed": 1, "logprobs": 1}
    if path == CHAT:
        fields["logprobs"] = True
    await ask(client, path, **fields)
    await stream(client, path, **fields)
    expected = answer_grammar(part, PLAIN, app.engine.tokenizer.vocabulary)
    assert [request.grammar for request in app.engine.requests] == [expected] * 4


@pytest.mark.parametrize("path", BASES)
async def test_any_text_is_allowed_where_nothing_else_is_asked_for(
    app: App, client: httpx.AsyncClient, path: str
) -> None:
    for fields in ({}, {"response_format": None}, {"response_format": {"type": "text"}}):
        answer = await ask(client, path, **fields)
        assert folded(await stream(client, path, **fields)) == folded_whole(answer)
    assert {request.grammar for request in app.engine.requests} == {ANY_TEXT}


async def test_candidates_of_several_prompts_are_all_constrained(app: App, client: httpx.AsyncClient) -> None:
    form = {"type": "json_object", "schema": SCHEMA}
    await ask(client, COMPLETIONS, prompt=["a", "b"], n=2, best_of=3, response_format=form)
    assert len(app.engine.requests) == 6
    assert all(request.grammar == app.engine.requests[0].grammar != ANY_TEXT for request in app.engine.requests)


async def test_a_model_that_reasons_may_do_so_before_a_constrained_answer() -> None:
    app = scripted('<think>hm</think>{"a": 1}')
    app.engine.chat_template = THINKING
    async with app.client() as client:
        answer = await ask(client, CHAT, response_format={"type": "json_object", "schema": SCHEMA})
    [request] = app.engine.requests
    channels = channel_format(ChatTemplate(THINKING), "x")
    assert request.grammar == answer_grammar(schema_part(SCHEMA), channels, app.engine.tokenizer.vocabulary)
    assert answer["choices"][0]["message"]["content"] == '{"a": 1}'
    assert answer["choices"][0]["message"]["reasoning_content"] == "hm"


@pytest.mark.parametrize("path", BASES)
async def test_unknown_fields_beside_a_schema_are_named(client: httpx.AsyncClient, path: str) -> None:
    definition = {"schema": {"x": 1}, "y": 1}
    response = await post(client, path, response_format={"type": "json_schema", "json_schema": definition, "z": 1})
    assert response.headers["x-octavo-ignored"] == "response_format.z, response_format.json_schema.y"


@pytest.mark.parametrize("path", BASES)
async def test_an_unknown_form_is_refused_with_the_known_ones(client: httpx.AsyncClient, path: str) -> None:
    for form in ({"type": "xml"}, {}, "json_object"):
        message = check_error(await post(client, path, response_format=form), 422, "response_format")["message"]
        assert "text, json_object, json_schema, regex or grammar" in message


@pytest.mark.parametrize("path", BASES)
@pytest.mark.parametrize(
    "form",
    [
        {"type": "json_object", "schema": {"type": "nothing"}},
        {"type": "json_schema", "json_schema": {"schema": False}},
        {"type": "json_object", "schema": {"$ref": "https://example.org/schema"}},
        {"type": "regex", "pattern": "(?=a)"},
        {"type": "grammar", "grammar": "start: nothing"},
    ],
    ids=str,
)
async def test_what_cannot_be_kept_to_is_refused(
    app: App, client: httpx.AsyncClient, path: str, form: dict[str, Any]
) -> None:
    body = check_error(await post(client, path, response_format=form), 422, "response_format")
    assert body["code"] == "unsupported_grammar"
    assert body["message"].startswith("response_format: ")
    assert not app.engine.requests


@pytest.mark.parametrize("path", BASES)
async def test_a_grammar_has_a_time_in_which_it_must_be_ready(path: str) -> None:
    app = build(WatchedEngine(ScriptedSpec()), limits=Limits(max_compile_time=0))
    async with app.client() as client:
        body = check_error(await post(client, path, response_format={"type": "json_object"}), 422, "response_format")
        assert (await post(client, path)).status_code == 200
    assert body["code"] == "unsupported_grammar"
    assert "more than 0 s to compile" in body["message"]


@pytest.mark.parametrize("path", BASES)
async def test_the_limits_on_schemas_are_those_of_the_server(path: str) -> None:
    limits = Limits(max_schema=20, max_schema_depth=2)
    async with build(WatchedEngine(ScriptedSpec()), limits=limits).client() as client:
        for schema, status in (({"const": "x" * 8}, 200), ({"const": "x" * 9}, 422), ({"const": "é" * 5}, 422)):
            form = {"type": "json_object", "schema": schema}
            assert (await post(client, path, response_format=form)).status_code == status
        form = {"type": "json_object", "schema": {"enum": [1]}}
        assert (await post(client, path, response_format=form)).status_code == 200
        form = {"type": "json_object", "schema": {"enum": [[]]}}
        assert (
            "at most 2 levels"
            in check_error(await post(client, path, response_format=form), 422, "response_format")["message"]
        )
        check_error(
            await post(client, path, response_format={"type": "regex", "pattern": "a" * 19}), 422, "response_format"
        )
