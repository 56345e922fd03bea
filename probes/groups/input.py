"""Bodies, numbers and routes that are not as they should be."""

import asyncio
import gzip
import itertools
import json
from collections.abc import Iterator
from typing import Any

from probes.answer import Answer, exchange
from probes.cases import CHAT, COMPLETIONS, JSON, Case, asking, client_of, send_all
from probes.counts import Counts
from probes.generated import generated_bodies
from probes.probe import MIB, Attack, Control, Group
from probes.schema_fuzzing import fuzz_document
from probes.target import Target
from support.bad_inputs import bad_inputs

OK, MALFORMED = (200,), (422,)
HUGE = 10**400
VALUES = ("NaN", "Infinity", "-1", "0", str(2**31), str(2**63), str(HUGE), "true", '"1"', "1.5", "null", "[]", "{}")
INTEGERS = {
    # With the largest that this probe's requests may ask for.
    "max_tokens": (0, 2**63 - 1),
    "max_completion_tokens": (2, 2),
    "min_tokens": (0, 2),
    "n": (1, 128),
    "top_k": (-1, 2**63 - 1),
    "seed": (-(2**63), 2**63 - 1),
}
NUMBERS = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "min_p": (0, 1),
    "frequency_penalty": (-2, 2),
    "presence_penalty": (-2, 2),
    "repetition_penalty": (1e-300, 1e300),
}
ONLY_AT = {
    COMPLETIONS: {"logprobs": (0, 20), "best_of": (1, 128)},
    CHAT: {"top_logprobs": (0, 20)},
}
NOT_FORWARDED = (
    "n_discard",
    "grammar",
    "api_base",
    "chat_template",
    "cache_salt",
    "request_id",
    "lora_request",
    "slot",
)
NOT_JSON_MEDIA = ("multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "text/plain", "image/png")
BOMB = gzip.compress(bytes(10 * MIB))
CONTEXT = 4096
MAX_BODY = 8 * MIB


def request_of(path: str, model: str, **fields: Any) -> dict[str, Any]:
    """One that a server answers, with these fields besides."""
    prompt = {"prompt": "x"} if path == COMPLETIONS else {"messages": [{"role": "user", "content": "x"}]}
    return {"model": model, **prompt, "max_tokens": 2, **fields}


def with_raw(given: dict[str, Any], name: str, value: str) -> bytes:
    """The object with a field as raw JSON, because NaN and the like cannot be written in another way."""
    fields = {key: each for key, each in given.items() if key != name}
    return f'{json.dumps(fields)[:-1]}, "{name}": {value}}}'.encode()


def number_cases(model: str) -> Iterator[Case]:
    """Every numeric field with every value, on both endpoints (I1)."""
    for path in (COMPLETIONS, CHAT):
        integers, base = INTEGERS | ONLY_AT[path], request_of(path, model)
        if path == CHAT:
            base["logprobs"] = True
        for name, value in itertools.product((*integers, *NUMBERS), VALUES):
            low, high = (integers | NUMBERS)[name]
            is_good = value == "null" or _is_within(value, low, high, is_integer=name in integers)
            expected = OK if is_good else MALFORMED
            yield Case(f"{path} {name}={value[:20]}", expected, with_raw(base, name, value), path)


def _is_within(value: str, low: float, high: float, *, is_integer: bool) -> bool:
    number = json.loads(value)
    if type(number) is float and (is_integer or number != number):
        return False
    return type(number) in (int, float) and low <= number <= high


async def numbers(target: Target) -> Counts:
    return await send_all(target, number_cases(target.model))


def fan_out_cases(model: str) -> Iterator[Case]:
    """Samples and prompts beyond what is allowed (I2): refused before anything is computed."""
    for path, name in ((COMPLETIONS, "n"), (COMPLETIONS, "best_of"), (CHAT, "n")):
        for number in (0, 129, 10**6, 2**40):
            yield Case(
                f"{path} {name}={number}",
                MALFORMED,
                json.dumps(request_of(path, model, **{name: number})).encode(),
                path,
                param=name,
            )
    yield asking("257 prompts", MALFORMED, model=model, prompt=["x"] * 257)
    yield asking("100000 prompts", MALFORMED, model=model, prompt=["x"] * 100_000)
    yield asking("32768 choices", (200, 503), model=model, prompt=["x"] * 256, n=128, max_tokens=2)


async def fan_out(target: Target) -> Counts:
    return await send_all(target, fan_out_cases(target.model))


def logprob_cases(model: str) -> Iterator[Case]:
    """All pairs that go together (I3)."""
    for number, echo, most, stream, n in itertools.product((0, 1, 20), (0, 1), (0, 2), (0, 1), (1, 2)):
        fields = {"logprobs": number, "echo": bool(echo), "max_tokens": most, "stream": bool(stream), "n": n}
        yield asking(f"{fields}", OK, **request_of(COMPLETIONS, model, **fields))
    for number, most, stream in itertools.product((0, 1, 20), (0, 2), (0, 1)):
        fields = {"logprobs": True, "top_logprobs": number, "max_tokens": most, "stream": bool(stream)}
        yield asking(f"{fields}", OK, CHAT, **request_of(CHAT, model, **fields))


async def logprob_pairs(target: Target) -> Counts:
    return await send_all(target, logprob_cases(target.model))


def table_cases(model: str) -> Iterator[Case]:
    """Those of the tests: I3 to I5, I7, I8, I10 and I12."""
    return map(Case.of, bad_inputs(model))


async def table(target: Target) -> Counts:
    return await send_all(target, table_cases(target.model), at_a_time=1)  # two adapters of one id are another fault


def id_cases(model: str) -> Iterator[Case]:
    """Token ids that are none, in every field that has some (I4), and very many."""
    for value in ("-1", str(10**9), str(2**31), str(HUGE), '"AI"', "NaN", "true", "1.5"):
        base = request_of(COMPLETIONS, model)
        yield Case(f"prompt of {value[:20]}", MALFORMED, with_raw(base, "prompt", f"[1, {value}]"))
        yield Case(f"stop_token_ids of {value[:20]}", MALFORMED, with_raw(base, "stop_token_ids", f"[{value}]"))
        key = value.strip('"')
        bias = f'{{"{key}": 1}}'
        yield Case(f"logit_bias of {value[:20]}", MALFORMED, with_raw(base, "logit_bias", bias))
    many = {str(number): 1 for number in range(100_000)}
    yield asking("100000 biases", MALFORMED, **request_of(COMPLETIONS, model, logit_bias=many))
    yield asking("100000 stop tokens", MALFORMED, **request_of(COMPLETIONS, model, stop_token_ids=[1] * 100_000))


async def token_ids(target: Target) -> Counts:
    return await send_all(target, id_cases(target.model))


def depth_cases(model: str) -> Iterator[Case]:
    """Nesting, names given twice, what follows the end, very many names (I7)."""
    base = request_of(COMPLETIONS, model)
    for depth in (65, 66, 200, 500, 100_000, 10**6):
        for opening, closing in (("[", "]"), ('{"a":', "}")):
            inner = opening * (depth - 1) + "1" + closing * (depth - 1)
            yield Case(f"{depth} levels of {opening}", MALFORMED, with_raw(base, "x", inner))
    deepest = "[" * 62 + "]" * 62
    yield Case("the deepest that is allowed", OK, with_raw(base, "x", deepest))
    yield Case("a bad field and then a good one", OK, with_raw(base, "n", '"x", "n": 1'))
    yield Case("a good field and then a bad one", MALFORMED, with_raw(base, "n", '1, "n": "x"'))
    yield Case("bytes after the end", MALFORMED, json.dumps(base).encode() + b"{}")
    for number, expected in ((20_000, OK), (100_001, MALFORMED)):
        names: dict[str, Any] = {f"field {index}": 1 for index in range(number)}
        yield Case(f"{number} unknown fields", expected, json.dumps(base | names).encode())


async def depth(target: Target) -> Counts:
    return await send_all(target, depth_cases(target.model))


def size_cases(model: str) -> Iterator[Case]:
    """Bodies as large as allowed, a byte larger, and ten times as large (I8)."""
    good = json.dumps(request_of(COMPLETIONS, model)).encode()
    for size, expected in ((MAX_BODY - 1, OK), (MAX_BODY, OK), (MAX_BODY + 1, (413,)), (10 * MAX_BODY, (413,))):
        for is_chunked in (False, True):
            how = "chunked" if is_chunked else "whole"
            yield Case(f"{size} bytes, {how}", expected, good.ljust(size), is_chunked=is_chunked)


async def sizes(target: Target) -> Counts:
    counts = await send_all(target, size_cases(target.model), at_a_time=1)
    good = json.dumps(request_of(COMPLETIONS, target.model)).encode()
    for lines in (("content-length: -1",), ("content-length: x",), ("content-length: 5", "content-length: 6")):
        answer = await exchange(target.place, target.place.head(COMPLETIONS, *lines) + good)
        counts.judge(" ".join(lines), answer, (400, 422), sent=good)
    for promised in (10 * MAX_BODY, 10**19, 10**30):
        data = target.place.head(COMPLETIONS, f"content-length: {promised}") + good
        answer = await exchange(target.place, data)
        counts.judge(f"{promised} bytes promised", answer, (400, 413), sent=good)
    return counts


def encoding_cases(model: str) -> Iterator[Case]:
    """Encodings that are not unpacked, and other media (I10)."""
    good = json.dumps(request_of(COMPLETIONS, model)).encode()
    for encoding in ("gzip", "x-gzip", "deflate", "br", "zstd", "gzip, gzip", "identity, gzip", "unknown", "GZIP"):
        for name, body in (("a bomb", BOMB), ("a good body", gzip.compress(good))):
            yield Case(f"{name} in {encoding}", (415,), body, headers={**JSON, "content-encoding": encoding})
    for media in NOT_JSON_MEDIA:
        yield Case(media, (415,), good, headers={"content-type": media})


async def encodings(target: Target) -> Counts:
    return await send_all(target, encoding_cases(target.model))


def route_cases(model: str) -> Iterator[Case]:
    """Methods and paths that there are not (I12)."""
    good = json.dumps(request_of(COMPLETIONS, model)).encode()
    paths = (
        *("//v1/completions", "/v1//completions", "/V1/completions", "/v1/Completions", "/v1/..%2fhealth/x"),
        *("/v1/completions/", "/v1/completions%00", "/v1/completions%2f", "/%2e%2e/%2e%2e/etc/passwd", "/v1/%ff"),
    )
    for path in paths:
        for method in ("GET", "POST", "DELETE", "HEAD", "OPTIONS"):
            yield Case(
                f"{method} {path}", (404,), good if method == "POST" else b"", path, method, headers=_media(method)
            )
    for path in (COMPLETIONS, CHAT, "/v1/tokenize"):
        for method in ("GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", "get"):
            yield Case(f"{method} {path}", (404, 405), b"", path, method, headers={})


def _media(method: str) -> dict[str, str]:
    return dict(JSON) if method == "POST" else {}


async def routes(target: Target) -> Counts:
    return await send_all(target, route_cases(target.model))


async def context(target: Target) -> Counts:
    """Prompts and answers longer than the context always end (I14)."""
    counts = Counts()
    async with client_of(target) as client:
        for length, most in itertools.product((1, CONTEXT - 1, CONTEXT, 10 * CONTEXT), (None, 0, 1, CONTEXT, 2**62)):
            fields = request_of(COMPLETIONS, target.model, prompt="x" * length, max_tokens=most, ignore_eos=True)
            answer = Answer.of(await client.post(COMPLETIONS, json=fields))
            counts.judge(f"{length} tokens and {most}", answer, OK if length <= CONTEXT else (400,))
            if answer.status == 200:
                usage = json.loads(answer.body)["usage"]
                counts.count(f"{length} tokens and {most}", usage["total_tokens"] <= CONTEXT, str(usage))
    return counts


async def unknown_fields(target: Target) -> Counts:
    """Names that other servers know are named in a header and go nowhere (I15)."""
    counts = Counts()
    async with client_of(target) as client:
        for path, name in itertools.product((COMPLETIONS, CHAT), NOT_FORWARDED):
            for value in ("x", 1, {"a": ["x"]}, "http://127.0.0.1:1/"):
                response = await client.post(path, json=request_of(path, target.model, **{name: value}))
                counts.judge(f"{path} {name}", Answer.of(response), OK)
                named = response.headers.get("x-octavo-ignored", "")
                counts.count(f"{path} {name} in the header", name in named, named)
    return counts


async def generated(target: Target) -> Counts:
    return await asyncio.to_thread(generated_bodies, target)


async def document(target: Target) -> Counts:
    return await asyncio.to_thread(fuzz_document, target)


GROUP = Group(
    "input",
    (
        Attack("numbers", numbers),
        Attack("fan-out", fan_out),
        Attack("logprob pairs", logprob_pairs),
        Attack("token ids", token_ids),
        Attack("bad bodies", table),
        Attack("depth", depth),
        Attack("sizes", sizes),
        Attack("encodings", encodings),
        Attack("routes", routes),
        Attack("context", context),
        Attack("unknown fields", unknown_fields),
        Attack("generated bodies", generated),
        Attack("schemathesis", document, is_compared=False),
    ),
    (
        Control("--max-body", "sizes", ("--max-body", "1GiB")),
        Control("--max-json-depth", "depth", ("--max-json-depth", "512")),
        Control("--max-json-items", "depth", ("--max-json-items", "100000000")),
        Control("--max-n", "fan-out", ("--max-n", "200")),
        Control("--max-prompts", "fan-out", ("--max-prompts", "300")),
        Control("--max-stop-tokens", "token ids", ("--max-stop-tokens", "1000000")),
        Control("--max-top-logprobs", "numbers", ("--max-top-logprobs", "9999999999")),
        Control("--max-stop-strings", "bad bodies", ("--max-stop-strings", "9999999", "--max-stop-length", "9999999")),
        Control("--max-messages", "bad bodies", ("--max-messages", "9999999")),
        Control("--max-tools", "bad bodies", ("--max-tools", "9999", "--max-tools-size", "1GiB")),
    ),
)
