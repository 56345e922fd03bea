"""Schemas, patterns, tools and templates."""

import json
import time
from collections.abc import Iterator
from typing import Any

import psutil

from probes.answer import Answer
from probes.bench import Bench
from probes.cases import ANY, CHAT, COMPLETIONS, Case, ask, asking, client_of, judge, send_all
from probes.counts import Counts
from probes.measure import slope
from probes.probe import MIB, Attack, Control, Drill, Group
from probes.sampler import sample
from probes.target import MODEL, Target
from support.agent_schemas import MCP, OPENAI
from support.canary import canary
from support.processes import Server

OK, MALFORMED, ANSWERED = (200,), (422,), (200, 400, 422)
NUM_BATCHES = 10
MAX_SLOPE = MIB
"""Bytes that memory may grow in a batch of schemas after the first half: noise of the allocator, not a leak."""
MAX_COMPILING = 192 * MIB
"""Of grammars that are made before it is known how large they are."""
CONTROL_TEXTS = (
    *("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<s>", "</s>", "[INST]", "[/INST]", "<<SYS>>", "<|eot_id|>"),
    *("<|start_header_id|>", "<|end_header_id|>", "<|begin_of_text|>", "<start_of_turn>", "<end_of_turn>", "<bos>"),
    *(
        "<|user|>",
        "<|assistant|>",
        "<|system|>",
        "<|end|>",
        "<|start|>",
        "<|channel|>",
        "<｜User｜>",
        "<｜Assistant｜>",
    ),
    *("<tool_call>", "</tool_call>", "<think>", "</think>", "<|tool▁calls▁begin|>", "[TOOL_CALLS]", "<reponame>"),
)
IMAGE_MARKS = ("<image>", "<__media__>", "<|image|>", "<|vision_start|><|image_pad|><|vision_end|>", "[IMG]")


def nested(depth: int, key: str = "items") -> str:
    return f'{{"{key}": ' * depth + "{}" + "}" * depth


def schema_texts(place: str) -> dict[str, tuple[tuple[int, ...], str]]:
    """Schemas as raw JSON and the statuses that they may get, by name. place: whose name remote references have."""
    strings = {"type": "string"}
    return {
        "depth 33": (MALFORMED, nested(33)),
        "depth 60 of properties": (MALFORMED, '{"properties": {"a": ' * 30 + "{}" + "}}" * 30),
        "a description of 100 kB": (MALFORMED, json.dumps({**strings, "description": "x" * 100_000})),
        "10000 levels": (MALFORMED, nested(10_000)),
        "a reference to itself": (ANSWERED, '{"$ref": "#"}'),
        "references in a ring": (ANSWERED, '{"$ref": "#/a", "a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}}'),
        "recursive properties": (OK, '{"type": "object", "properties": {"a": {"$ref": "#"}}}'),
        "a reference to nothing": (MALFORMED, '{"$ref": "#/nothing"}'),
        "a remote reference": (MALFORMED, f'{{"$ref": "http://{place}/schema"}}'),
        "a remote reference inside": (MALFORMED, f'{{"items": {{"$ref": "http://{place}/schema#/a"}}}}'),
        "a remote id": (ANSWERED, f'{{"$id": "http://{place}/schema", "$ref": "other"}}'),
        "a remote dialect": (ANSWERED, f'{{"$schema": "http://{place}/schema", "type": "string"}}'),
        "a file": (MALFORMED, '{"$ref": "file:///etc/passwd"}'),
        "anything": (OK, "{}"),
        "true": (OK, "true"),
        "false": (MALFORMED, "false"),
        "contradiction": (MALFORMED, '{"allOf": [{"type": "string"}, {"type": "integer"}]}'),
        "an empty choice": (MALFORMED, '{"enum": []}'),
        "maxLength 10^9": (ANSWERED, json.dumps({**strings, "maxLength": 10**9})),
        "minLength 10^9": (ANSWERED, json.dumps({**strings, "minLength": 10**9})),
        "minItems 10^9": (ANSWERED, json.dumps({"type": "array", "minItems": 10**9})),
        "nested minItems": (
            ANSWERED,
            '{"type": "array", "minItems": 1000, "items": ' * 8 + '{"type": "string"}' + "}" * 8,
        ),
        "maxItems 2^63": (ANSWERED, json.dumps({"type": "array", "maxItems": 2**63})),
        "multipleOf 0": (MALFORMED, '{"type": "integer", "multipleOf": 0}'),
        "multipleOf 1e-300": (ANSWERED, '{"type": "number", "multipleOf": 1e-300}'),
        "multipleOf 1e-320": (ANSWERED, '{"type": "number", "multipleOf": 1e-320}'),
        "a choice of 10^400": (ANSWERED, f'{{"enum": [{10**400}], "multipleOf": 3}}'),
        "a range of 10^400": (MALFORMED, f'{{"type": "integer", "minimum": 0, "maximum": {10**400}}}'),
        "100000 choices": (MALFORMED, json.dumps({"enum": list(range(100_000))})),
        "5000 choices": (ANSWERED, json.dumps({"enum": [f"choice {n}" for n in range(4_000)]})),
        "100000 properties": (MALFORMED, json.dumps({"properties": {f"p{n}": {} for n in range(100_000)}})),
        "3000 properties": (
            ANSWERED,
            json.dumps({"type": "object", "properties": {f"p{n}": {} for n in range(3_000)}}),
        ),
        "1000 alternatives": (ANSWERED, json.dumps({"anyOf": [{"pattern": f"^x{n}.*$"} for n in range(1_000)]})),
        "alternatives that nest": (ANSWERED, '{"anyOf": [{"type": "null"}, ' * 14 + "{}" + "]}" * 14),
        "oneOf that overlaps": (ANSWERED, json.dumps({"oneOf": [strings, {"type": "string", "maxLength": 3}]})),
        "not": (ANSWERED, '{"not": {"not": {"not": {"type": "string"}}}}'),
        "a keyword of the wrong type": (MALFORMED, '{"properties": []}'),
        "a type that there is not": (MALFORMED, '{"type": "text"}'),
    }


PATTERNS: dict[str, tuple[tuple[int, ...], str]] = {
    "60000 brackets": (MALFORMED, "(" * 60_000),
    "a quantifier of nothing": (OK, "^+[a-z]$"),
    "a count of nothing": (OK, "^{2}x$"),
    "look behind": (MALFORMED, "(?<=x)a"),
    "look ahead": (MALFORMED, "(?!x)a"),
    "a reference back": (MALFORMED, r"(a)\1"),
    "a group without a number": (OK, "(?:..)"),
    "nested repeats": (OK, "(a+)+"),
    "alternatives that repeat": (OK, "(a|a|a)*b"),
    "counts of counts": (ANSWERED, "((a{1,1000}){1,1000}){1,1000}"),
    "a count of 10^9": (ANSWERED, "a{1000000000}"),
    "many classes": (ANSWERED, r"[\p{L}\p{N}]{1,1000}" * 20),
    "nothing": (ANSWERED, ""),
    "never": (MALFORMED, "[^\\s\\S]"),
    "a bracket": (MALFORMED, "["),
    "NUL": (ANSWERED, "\0"),
}
GRAMMARS: dict[str, tuple[tuple[int, ...], str]] = {
    "left recursion": (ANSWERED, 'start: start "a" | "a"'),
    "ambiguous": (ANSWERED, 'start: start start | "a"'),
    "only itself": (ANSWERED, "start: start"),
    "GBNF": (OK, 'root ::= "yes" | "no"'),
    "nothing there": (MALFORMED, "start: nothing"),
    "10000 rules": (
        ANSWERED,
        "\n".join(["start: r0", *(f'r{n}: "a" r{n + 1} | "b"' for n in range(2_000)), 'r2000: "c"']),
    ),
    "an import": (MALFORMED, '%import "/etc/passwd"\nstart: "a"'),
    "repeats": (ANSWERED, 'start: ("a"{1,1000}){1,1000}'),
    "text": (MALFORMED, "this is no grammar"),
}


def format_cases(place: str) -> Iterator[Case]:
    base = json.dumps({"model": MODEL, "prompt": "x", "max_tokens": 2})[:-1]
    chat = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "x"}], "max_tokens": 2})[:-1]
    for name, (expected, text) in schema_texts(place).items():
        answer_format = f'{{"type": "json_schema", "json_schema": {{"name": "x", "schema": {text}}}}}'
        body = f'{base}, "response_format": {answer_format}}}'
        param = "response_format" if expected == MALFORMED and "10000" not in name else ANY
        yield Case(f"schema: {name}", expected, body.encode(), param=param)
        if text.startswith("{"):
            function = f'{{"type": "function", "function": {{"name": "f", "parameters": {text}}}}}'
            body = f'{chat}, "tool_choice": "required", "tools": [{function}]}}'
            yield Case(f"tool: {name}", ANSWERED, body.encode(), CHAT)
    for name, (expected, text) in PATTERNS.items():
        fields: dict[str, Any] = {"model": MODEL, "prompt": "x", "max_tokens": 2}
        yield asking(f"pattern: {name}", expected, **fields, response_format={"type": "regex", "pattern": text})
        schema = {"type": "json_object", "schema": {"type": "string", "pattern": text}}
        yield asking(f"pattern in a schema: {name}", ANSWERED, **fields, response_format=schema)
    for name, (expected, text) in GRAMMARS.items():
        fields = {"model": MODEL, "prompt": "x", "max_tokens": 2}
        yield asking(f"grammar: {name}", expected, **fields, response_format={"type": "grammar", "grammar": text})


async def hostile(target: Target) -> Counts:
    """Schemas that cannot be kept, cost much, or point elsewhere (G1). Nobody follows a reference."""
    counts = Counts()
    async with canary() as bird, client_of(target) as client:
        for case in format_cases(bird.place):
            start = time.monotonic()
            judge(counts, case, await ask(client, case), target.keys)
            counts.worst("longest answer, s", time.monotonic() - start)
        counts.count("no reference was followed", bird.num_hits == 0, f"{bird.num_hits} connections")
    return counts


def unique_case(number: int) -> Case:
    schema = {"type": "object", "properties": {f"p{number}": {"type": "string", "maxLength": number % 50 + 1}}}
    fields: dict[str, Any] = {"model": MODEL, "prompt": "x", "max_tokens": 1}
    return asking(f"schema {number}", OK, **fields, response_format={"type": "json_object", "schema": schema})


def unique_schemas(bench: Bench) -> Counts:
    """Ever new schemas, and memory after each batch (G2)."""
    import asyncio

    counts = Counts()
    with bench.serving() as server:
        target, memory = bench.target(server), []
        size = bench.sized(1000, NUM_BATCHES) // NUM_BATCHES
        for batch in range(NUM_BATCHES):
            cases = [unique_case(batch * size + number) for number in range(size)]
            counts.add(asyncio.run(send_all(target, cases)))
            memory.append(_memory(server))
        growth = slope(memory[NUM_BATCHES // 2 :])
    counts.figures["growth in a batch, KiB"] = growth / 1024
    counts.count("memory stays", growth <= MAX_SLOPE, f"{growth / MIB:.2f} MiB a batch of {size}")
    return counts


def _memory(server: Server) -> float:
    return float(sample(psutil.Process(server.pid)).memory)


def legitimate_cases() -> Iterator[Case]:
    """What agents send (G3)."""
    prompt: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "x"}], "max_tokens": 2}
    dates = r"^(19|20)\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$"
    more: dict[str, Any] = {
        "a date": {"type": "string", "pattern": dates},
        "long strings": {"type": "array", "items": {"type": "string", "maxLength": 65_536}, "maxItems": 100},
        "a long string": {"type": "object", "properties": {"text": {"type": "string", "maxLength": 65_536}}},
    }
    schemas: dict[str, Any] = {**OPENAI, **MCP, **more}
    for name, schema in schemas.items():
        definition = {"name": "x", "schema": schema, "strict": True}
        yield asking(f"answer: {name}", OK, CHAT, **prompt, response_format=_json_schema(definition))
        if schema.get("type", "object") == "object":
            for choice in ("auto", "required"):
                yield asking(
                    f"tool, {choice}: {name}", OK, CHAT, **prompt, tools=[_tool("f", schema)], tool_choice=choice
                )
    tools = [
        _tool(f"f{number}", schema) for number, schema in enumerate(MCP.values()) if schema.get("type") == "object"
    ]
    many = [_tool(f"g{number}", tools[number % len(tools)]["function"]["parameters"]) for number in range(50)]
    for choice in ("auto", "required", "none"):
        yield asking(f"50 tools, {choice}", OK, CHAT, **prompt, tools=many, tool_choice=choice)


def _json_schema(definition: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": definition}


def _tool(name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


async def legitimate(target: Target) -> Counts:
    return await send_all(target, legitimate_cases())


def message_cases() -> Iterator[Case]:
    """Roles, contents and calls that are not as they should be (G6)."""
    cases: tuple[tuple[str, tuple[int, ...], list[Any]], ...] = (
        ("an unknown role", MALFORMED, [{"role": "robot", "content": "x"}]),
        ("100000 messages", MALFORMED, [{"role": "user", "content": "x"}] * 100_000),
        ("no content", ANSWERED, [{"role": "user", "content": None}]),
        ("an empty content", ANSWERED, [{"role": "user", "content": ""}]),
        ("no parts", ANSWERED, [{"role": "user", "content": []}]),
        ("a result without a call", ANSWERED, [{"role": "tool", "content": "x"}]),
        ("a result of no call", ANSWERED, [{"role": "tool", "content": "x", "tool_call_id": "nothing"}]),
        ("an image to a text model", (400,), [{"role": "user", "content": [_image("data:image/png;base64,AA==")]}]),
        ("assistant first", ANSWERED, [{"role": "assistant", "content": "x"}]),
        ("system last", ANSWERED, [{"role": "user", "content": "x"}, {"role": "system", "content": "x"}]),
        ("10000 system messages", ANSWERED, [{"role": "system", "content": "x"}] * 10_000),
        (
            "arguments that are no JSON",
            ANSWERED,
            [_calling("{{{"), {"role": "tool", "content": "x", "tool_call_id": "a"}],
        ),
    )
    for name, expected, messages in cases:
        yield asking(name, expected, CHAT, model=MODEL, messages=messages, max_tokens=2)


def _image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def _calling(arguments: str) -> dict[str, Any]:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


async def conversations(target: Target) -> Counts:
    return await send_all(target, message_cases())


async def control_tokens(target: Target) -> Counts:
    """A control token that somebody writes is text (G7): no more of them in the prompt than without it."""
    counts = Counts()
    async with client_of(target) as client:

        async def num_controls(role: str, text: str) -> int:
            messages = [
                {"role": role, "content": text},
                *([] if role == "user" else [{"role": "user", "content": "x"}]),
            ]
            fields = {"model": MODEL, "messages": messages, "max_tokens": 0, "loglikelihood": True}
            answer = Answer.of(await client.post(CHAT, json=fields))
            counts.judge(f"{role}: {text}", answer, OK)
            entries = json.loads(answer.body)["choices"][0]["logprobs"]["content"] if answer.status == 200 else []
            return sum(entry["token"] in CONTROL_TEXTS for entry in entries)

        for role in ("user", "system"):
            usual = await num_controls(role, "a text")
            for text in CONTROL_TEXTS:
                found = await num_controls(role, f"a {text} text {text}{text}")
                counts.count(f"{role}: {text} is text", found == usual, f"{found} control tokens, not {usual}")
                counts.worst("control tokens out of texts", found - usual)
    return counts


async def image_marks(target: Target) -> Counts:
    """What stands for images in prompts is text where there is no image (G8)."""
    cases = [
        asking(f"{mark} in a {path}", OK, path, model=MODEL, max_tokens=2, **fields)
        for mark in IMAGE_MARKS
        for path, fields in (
            (COMPLETIONS, {"prompt": f"{mark} {mark}"}),
            (CHAT, {"messages": [{"role": "user", "content": f"{mark} {mark}"}]}),
        )
    ]
    return await send_all(target, cases)


GROUP = Group(
    "grammar",
    (
        Attack("hostile schemas", hostile, max_growth=MAX_COMPILING),
        Drill("unique schemas", unique_schemas),
        Attack("agents' schemas", legitimate, flags=("--ctx", "32768")),
        Attack("conversations", conversations),
        Attack("control tokens", control_tokens, engine="llama", is_compared=False),
        Attack("image marks", image_marks, engine="llama", is_compared=False),
    ),
    (
        Control("--max-schema-depth", "hostile schemas", ("--max-schema-depth", "512", "--max-json-depth", "512")),
        Control("--max-schema", "hostile schemas", ("--max-schema", "1GiB")),
        Control("--max-messages", "conversations", ("--max-messages", "9999999", "--max-json-items", "100000000")),
    ),
)
