"""What is said about requests that are not quite right, or not quite known."""

import asyncio
from typing import Any

import httpx
import pytest

from octavo.core.limits import Limits
from octavo.engine.specs import ScriptedSpec
from support.bad_inputs import CHAT, COMPLETIONS
from support.checks import check_error

from .asking import chat, complete, post
from .calling import TOOLS, WEATHER
from .server import WatchedEngine, build, scripted


async def test_unknown_fields_are_named_in_a_header(client: httpx.AsyncClient) -> None:
    response = await complete(
        client, foo=1, bar={"a": [1]}, stream=True, stream_options={"include_usage": None, "x": 1}, absent=None
    )
    assert response.status_code == 200
    assert response.headers["x-octavo-ignored"] == "foo, bar, stream_options.x"


async def test_a_dot_in_a_name_does_not_make_it_another_field(client: httpx.AsyncClient) -> None:
    response = await complete(client, **{"my.echo": True, "my.tools": []})
    assert response.status_code == 200
    assert response.headers["x-octavo-ignored"] == "my.echo, my.tools"


async def test_the_header_of_unknown_fields_is_short_and_harmless(client: httpx.AsyncClient) -> None:
    names = ["evil\r\nset-cookie: a=b", "ünïcode", "x" * 10_000, *(f"field{i}" for i in range(1000))]
    header = (await complete(client, **dict.fromkeys(names, 1))).headers["x-octavo-ignored"]
    assert len(header) < 1100
    assert header.startswith("evil??set-cookie:?a?b, ?n?code, xxx")
    assert header.endswith(", ...")


async def test_a_large_body_is_read_like_a_small_one(client: httpx.AsyncClient) -> None:
    long = "x" * 100_000
    answered = await complete(client, user=long, foo=1, stop=None)
    assert answered.status_code == 200
    assert answered.headers["x-octavo-ignored"] == "foo"
    check_error(await complete(client, user=long, n="1"), 422, "n")
    faulty = b'{"model": "m", "prompt": "x", "list": [%s1.5], "user": "\\ud800"}' % (b"1.5," * 50_000)
    for body, param in ((faulty, "user"), (faulty.replace(b"[", b"[1e999,"), "list"), (faulty[:-1], None)):
        response = await client.post(COMPLETIONS, content=body, headers={"content-type": "application/json"})
        check_error(response, 422, param)
    assert {response.status_code for response in await many_at_once(client, user=long)} == {200}


async def many_at_once(client: httpx.AsyncClient, **fields: Any) -> list[httpx.Response]:
    return await asyncio.gather(*(complete(client, **fields) for _ in range(20)))


async def test_a_strict_server_refuses_unknown_fields() -> None:
    async with scripted(is_strict=True).client() as client:
        body = check_error(await complete(client, temprature=1), 422, "temprature")
        nested = check_error(await chat(client, {"role": "user", "content": "x", "weight": 1}), 422, "messages")
        known = await complete(client, temperature=1, echo=False, suffix=None)
    assert body["code"] == nested["code"] == "unknown_field"
    assert known.status_code == 200


async def test_a_field_of_the_other_endpoint_is_not_known(client: httpx.AsyncClient) -> None:
    completed = await complete(client, top_logprobs=1, reasoning_effort="low", chat_template_kwargs={"a": 1})
    assert completed.headers["x-octavo-ignored"] == "top_logprobs, reasoning_effort, chat_template_kwargs"
    chatted = await chat(client, {"role": "user", "content": "x"}, echo=True, suffix="x", best_of=2)
    assert chatted.headers["x-octavo-ignored"] == "echo, suffix, best_of"


@pytest.mark.parametrize(
    ("field", "most", "too_much"),
    [("n", 2, 3), ("best_of", 2, 3), ("logprobs", 1, 2), ("stop_token_ids", [1, 2], [1, 2, 3]), ("stop", "ab", "abc")],
)
async def test_the_limits_are_those_of_the_server(field: str, most: Any, too_much: Any) -> None:
    limits = Limits(max_n=2, max_top_logprobs=1, max_stop_tokens=2, max_stop_length=2)
    async with build(WatchedEngine(ScriptedSpec()), limits=limits).client() as client:
        assert (await complete(client, **{field: most})).status_code == 200
        message = check_error(await complete(client, **{field: too_much}), 422, field)["message"]
    allowed, given = (value if isinstance(value, int) else len(value) for value in (most, too_much))
    assert f"at most {allowed} " in message
    assert f"(given {given})" in message


async def test_a_conversation_has_a_limit_of_messages() -> None:
    message = {"role": "user", "content": "x"}
    async with build(WatchedEngine(ScriptedSpec()), limits=Limits(max_messages=2)).client() as client:
        assert (await chat(client, message, message)).status_code == 200
        body = check_error(await chat(client, message, message, message), 422, "messages")
    assert body["message"] == "messages: Input should have at most 2 messages (given 3)."


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"tools": TOOLS, "tool_choice": "any"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "function"}}, "tool_choice.function"),
        (
            {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"function": "f"}}},
            "tool_choice.function.name",
        ),
        ({"functions": [WEATHER], "function_call": "any"}, "function_call"),
        ({"functions": [WEATHER], "function_call": {"function": 1}}, "function_call.name"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, "response_format.json_schema.schema"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"json_schema": {}, "schema": 1}}},
            "response_format.json_schema.schema",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": {"text": 1}}]}]},
            "messages.0.content.0.text",
        ),
        ({"messages": [{"role": "user", "content": [{"type": "audio"}]}]}, "messages.0.content.0"),
        ({"messages": [{"role": "user", "content": [1]}]}, "messages.0.content.0"),
        ({"messages": [{"role": "user", "content": 1}]}, "messages.0.content"),
    ],
    ids=str,
)
async def test_a_fault_is_where_the_client_wrote_it(
    client: httpx.AsyncClient, fields: dict[str, Any], path: str
) -> None:
    body = check_error(await post(client, CHAT, **fields), 422, path.split(".")[0])
    assert body["message"].startswith(f"{path}: ")
    assert ".".join(map(str, body["detail"][0]["loc"])) == f"body.{path}"


async def test_a_message_says_what_was_given_and_what_is_allowed(client: httpx.AsyncClient) -> None:
    body = check_error(await complete(client, temperature=3), 422, "temperature")
    assert body["message"] == "temperature: Input should be less than or equal to 2 (given 3)"
    assert body["detail"] == [
        {
            "loc": ["body", "temperature"],
            "msg": "Input should be less than or equal to 2 (given 3)",
            "type": "less_than_equal",
        }
    ]


async def test_all_faults_are_in_the_detail(client: httpx.AsyncClient) -> None:
    body = check_error(await complete(client, temperature=3, n=0, stop=1), 422, "n")
    assert [problem["loc"][1] for problem in body["detail"]] == ["n", "temperature", "stop"]


@pytest.mark.parametrize(
    "media", ["application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8", None]
)
async def test_json_may_be_announced_in_some_ways_or_not_at_all(client: httpx.AsyncClient, media: str | None) -> None:
    headers = {} if media is None else {"content-type": media}
    response = await client.post(COMPLETIONS, content=b'{"model": "demo", "prompt": "x"}', headers=headers)
    assert response.status_code == 200
