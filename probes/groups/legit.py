"""What real clients send: no guard may refuse any of it."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import Any

from probes.answer import exchange
from probes.cases import CHAT, COMPLETIONS, JSON, Case, asking, send_all
from probes.counts import Counts
from probes.probe import MIB, Attack, Group
from probes.target import MODEL, Target
from support.agent_schemas import MCP, OPENAI
from support.bfcl import bfcl_cases
from support.pydantic_models import MODELS

OK = (200,)
CONTEXT = 32_768
LONG = 30_000
CONTEXT_FLAGS = ("--ctx", str(CONTEXT))
USER = {"role": "user", "content": "What is the weather in Paris, and what should I wear?"}
NUM_TURNS = 20


def no_bfcl() -> str:
    try:
        return "" if bfcl_cases() else "the package has no cases"
    except (subprocess.CalledProcessError, OSError):
        return "the package bfcl-eval cannot be fetched"


def chatting(name: str, messages: list[Any], **fields: Any) -> Case:
    return asking(name, OK, CHAT, **{"model": MODEL, "messages": messages, "max_tokens": 4, **fields})


def tool(name: str, parameters: dict[str, Any], description: str = "") -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def calling(number: int) -> list[dict[str, Any]]:
    """A turn of a conversation with two calls and their results."""
    ids = [f"call_{number}_{index}" for index in range(2)]
    calls = [{"id": id, "type": "function", "function": {"name": "f0", "arguments": '{"city": "Paris"}'}} for id in ids]
    results = [
        {"role": "tool", "tool_call_id": id, "content": json.dumps({"degrees": 18, "text": "é\n" * 20})} for id in ids
    ]
    return [
        USER,
        {"role": "assistant", "content": None, "tool_calls": calls},
        *results,
        {"role": "assistant", "content": "18"},
    ]


def agent_cases() -> Iterator[Case]:
    """Conversations with tools, structured answers, long lists of functions."""
    schemas: dict[str, Any] = {**MCP, **OPENAI}
    tools = [
        tool(f"f{number}", schema, "What it does.") for number, schema in enumerate(MCP.values()) if _is_object(schema)
    ]
    named = {"type": "function", "function": {"name": tools[0]["function"]["name"]}}
    for choice in ("auto", "none", "required", named):
        yield chatting(f"tools, {choice}", [USER], tools=tools, tool_choice=choice, parallel_tool_calls=False)
        yield chatting(f"tools, streamed, {choice}", [USER], tools=tools, tool_choice=choice, stream=True)
    history = [message for number in range(NUM_TURNS) for message in calling(number)]
    yield chatting(
        "a long conversation with calls", [{"role": "system", "content": "x" * 4000}, *history, USER], tools=tools
    )
    yield chatting("128 tools", [USER], tools=[tool(f"g{n}", _small(n)) for n in range(128)])
    for name, schema in schemas.items():
        answer = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}
        yield chatting(f"answer: {name}", [USER], response_format=answer)
        yield chatting(f"JSON: {name}", [USER], response_format={"type": "json_object", "schema": schema})
    for name, model in MODELS.items():
        answer = {"type": "json_schema", "json_schema": {"name": "answer", "schema": model.json_schema()}}
        yield chatting(f"model: {name}", [USER], response_format=answer)
    older = [each["function"] for each in tools]
    yield chatting("functions", [USER], functions=older, function_call="auto")
    yield chatting(
        "every knob", [USER], **_knobs(), logprobs=True, top_logprobs=20, user="someone", metadata={"a": "b"}
    )


def _is_object(schema: dict[str, Any]) -> bool:
    return schema.get("type") == "object"


def _small(number: int) -> dict[str, Any]:
    return {"type": "object", "properties": {f"p{number}": {"type": "string"}}, "required": [f"p{number}"]}


def _knobs() -> dict[str, Any]:
    return {
        "temperature": 0.7,
        "top_p": 0.95,
        "min_p": 0.05,
        "top_k": 40,
        "seed": 7,
        "n": 2,
        "stop": ["\n\n"] * 16,
        "frequency_penalty": 0.5,
        "presence_penalty": 0.5,
        "repetition_penalty": 1.1,
        "logit_bias": {"65": -100},
    }


async def agents(target: Target) -> Counts:
    return await send_all(target, agent_cases())


async def leaderboard(target: Target) -> Counts:
    """Functions of the Berkeley Function-Calling Leaderboard, as the model is asked."""
    cases = islice(bfcl_cases(), target.sized(300))
    asked = (chatting(case.id, list(case.messages), tools=list(case.tools)) for case in cases)
    return await send_all(target, asked)


def long_cases() -> Iterator[Case]:
    """Prompts up to the context, and many of them."""
    for length in (LONG, CONTEXT - 8, CONTEXT - 1):
        yield asking(f"{length} tokens", OK, model=MODEL, prompt="x" * length, max_tokens=4)
        yield asking(f"{length} ids", OK, model=MODEL, prompt=[65] * length, max_tokens=4)
    yield chatting(f"a message of {LONG} tokens", [{"role": "user", "content": "é " * (LONG // 3)}])
    yield chatting("1000 messages", [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}] * 500)
    yield asking("256 prompts", OK, model=MODEL, prompt=["x"] * 256, max_tokens=1)
    yield asking("128 samples", OK, model=MODEL, prompt="x", n=128, max_tokens=1)
    yield asking("echo with probabilities", OK, model=MODEL, prompt="x" * 4000, max_tokens=0, echo=True, logprobs=5)
    yield asking("a megabyte of text to tokenize", OK, "/v1/tokenize", model=MODEL, text="word " * 200_000)
    yield asking("an answer of 2000 tokens", OK, model=MODEL, prompt="x", max_tokens=2000, ignore_eos=True, stream=True)


async def long_prompts(target: Target) -> Counts:
    return await send_all(target, long_cases())


def header_cases() -> Iterator[Case]:
    """Headers that proxies, browsers and clients add."""
    body = json.dumps({"model": MODEL, "prompt": "x", "max_tokens": 1}).encode()
    for name, headers in (
        ("cookies", {"cookie": "; ".join(f"c{n}={'x' * 50}" for n in range(100))}),
        (
            "a proxy's",
            {"x-forwarded-for": "1.2.3.4, 5.6.7.8", "x-forwarded-proto": "https", "via": "1.1 x", "forwarded": "for=1"},
        ),
        ("a tracer's", {"traceparent": f"00-{'1' * 32}-{'2' * 16}-01", "tracestate": "a=b", "baggage": "c=d"}),
        ("100 headers", {f"x-{n}": "x" * 100 for n in range(100)}),
        ("a long token", {"x-amz-security-token": "x" * 16_000}),
        ("a charset", {"content-type": 'application/json; charset="UTF-8"'}),
        (
            "a client's",
            {"x-stainless-lang": "python", "user-agent": "x" * 500, "accept": "*/*", "openai-organization": "x"},
        ),
        ("a client's id", {"x-request-id": "a-client.s_id"}),
    ):
        yield Case(name, OK, body, COMPLETIONS, headers={**JSON, **headers})
        yield Case(f"{name}, chunked", OK, body, COMPLETIONS, headers={**JSON, **headers}, is_chunked=True)


async def connections(target: Target) -> Counts:
    """Slow but steady uploads, and what older or careful clients send."""
    counts = await send_all(target, header_cases())
    place = target.place
    body = json.dumps({"model": MODEL, "prompt": "x", "max_tokens": 1}).encode()

    async def steadily() -> AsyncIterator[bytes]:
        padded = body.ljust(200_000)
        yield place.head(COMPLETIONS, f"content-length: {len(padded)}")
        for start in range(0, len(padded), 10_000):
            yield padded[start : start + 10_000]
            await asyncio.sleep(0.05)

    counts.judge("200 kB in a second", await exchange(place, steadily()), OK)
    counts.judge("expecting to continue", await exchange(place, _continuing(place.head, body)), (100, 200))
    older = place.head(COMPLETIONS, f"content-length: {len(body)}").replace(b"HTTP/1.1", b"HTTP/1.0") + body
    counts.judge("HTTP/1.0", await exchange(place, older), OK)
    extended = place.head(COMPLETIONS, "transfer-encoding: chunked") + b"%x;name=value\r\n%s\r\n0\r\nx: y\r\n\r\n" % (
        len(body),
        body,
    )
    counts.judge("chunks with extensions and trailers", await exchange(place, extended), OK)
    upgrade = place.head(
        COMPLETIONS, f"content-length: {len(body)}", "connection: upgrade, http2-settings", "upgrade: h2c"
    )
    counts.judge("would rather speak HTTP/2", await exchange(place, upgrade + body), OK)
    return counts


def _continuing(head: Any, body: bytes) -> bytes:
    return bytes(head(COMPLETIONS, f"content-length: {len(body)}", "expect: 100-continue")) + body


GROUP = Group(
    "legit",
    (
        Attack("agents", agents, flags=CONTEXT_FLAGS),
        Attack("function-calling leaderboard", leaderboard, flags=CONTEXT_FLAGS, why_not=no_bfcl),
        Attack("long prompts", long_prompts, flags=CONTEXT_FLAGS, max_growth=256 * MIB),
        Attack("headers and uploads", connections),
    ),
)
