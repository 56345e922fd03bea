"""Requests that must be refused, as data: for the application alone and for a whole server."""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import httpx

from support.bad_formats import BAD_FORMATS
from support.bad_tools import BAD_CALLING_MESSAGES, BAD_TOGETHER, BAD_TOOL_FIELDS

JSON = {"content-type": "application/json"}
COMPLETIONS = "/v1/completions"
CHAT = "/v1/chat/completions"
ADAPTERS = "/v1/adapters"


@dataclass(frozen=True, slots=True)
class BadInput:
    """A request, the status that it must get and the field that the answer must name.

    is_chunked: send the body without its length.
    """

    name: str
    status: int
    param: str | None = None
    method: str = "POST"
    path: str = COMPLETIONS
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=lambda: dict(JSON))
    is_chunked: bool = False


NOT_NUMBERS = ('"1"', "true", "false", "[]", "[1]", "{}", '"nan"')
NOT_BOOLEANS = ('"true"', "1", "0", "[]", "{}", "NaN")
NOT_FINITE = ("NaN", "Infinity", "-Infinity", "1e999", "-1e999", str(10**400), "-" + str(10**400))
TOO_LONG_TO_CONVERT = "9" * 5000

BAD_VALUES: dict[str, tuple[str, ...]] = {
    "temperature": (*NOT_NUMBERS, *NOT_FINITE, TOO_LONG_TO_CONVERT, "-0.1", "2.001", "-1", "3", "1e300"),
    "top_p": (*NOT_NUMBERS, *NOT_FINITE, "-0.1", "1.001", "2"),
    "min_p": (*NOT_NUMBERS, *NOT_FINITE, "-0.1", "1.001"),
    "frequency_penalty": (*NOT_NUMBERS, *NOT_FINITE, "-2.1", "2.1"),
    "presence_penalty": (*NOT_NUMBERS, *NOT_FINITE, "-2.1", "2.1"),
    "repetition_penalty": (*NOT_NUMBERS, *NOT_FINITE, "0", "0.0", "-1"),
    "top_k": (*NOT_NUMBERS, *NOT_FINITE, "1.5", "1.0", "-2", TOO_LONG_TO_CONVERT),
    "max_tokens": (*NOT_NUMBERS, *NOT_FINITE, "1.5", "1.0", "-1", TOO_LONG_TO_CONVERT),
    "max_completion_tokens": (*NOT_NUMBERS, *NOT_FINITE, "1.5", "-1"),
    "n": (*NOT_NUMBERS, *NOT_FINITE, "1.5", "1.0", "0", "-1", "129", "1000000"),
    "seed": (*NOT_NUMBERS, *NOT_FINITE, "1.5", "1.0", str(2**63), str(-(2**63) - 1)),
    "stop": ("1", "true", "{}", "NaN", '""', '[""]', '["a", ""]', "[1]", "[null]", '[["a"]]'),
    "stop_token_ids": (
        "1",
        "true",
        '"x"',
        "{}",
        "[true]",
        "[1.0]",
        '["1"]',
        "[null]",
        "[[1]]",
        "[-1]",
        "[999999999]",
        f"[{10**400}]",
        "[NaN]",
        json.dumps([1] * 65),
    ),
    "response_format": BAD_FORMATS,
    "include_stop_str_in_output": NOT_BOOLEANS,
    "min_tokens": (*NOT_NUMBERS, *NOT_FINITE, "1.5", "1.0", "-1", TOO_LONG_TO_CONVERT),
    "loglikelihood": NOT_BOOLEANS,
    "stream": NOT_BOOLEANS,
    "log_prompt": NOT_BOOLEANS,
    "ignore_eos": NOT_BOOLEANS,
    "stream_options": ("1", "true", '"x"', "[]", '{"include_usage": true}', "{}"),
    "user": ("1", "true", "[]", "{}", "NaN"),
    "model": ("null", "1", "true", "[]", "{}", "NaN"),
    "peft": ("1", "true", "[]", "{}", "NaN"),
    "logit_bias": (
        "1",
        "true",
        '"x"',
        "[]",
        '{"a": 1}',
        '{"-1": 1}',
        '{"01": 1}',
        '{"1.0": 1}',
        '{" 1": 1}',
        '{"+1": 1}',
        '{"": 1}',
        '{"١": 1}',
        '{"1": 100.1}',
        '{"1": -100.1}',
        '{"1": "1"}',
        '{"1": true}',
        '{"1": []}',
        '{"1": NaN}',
        '{"1": 1e999}',
        f'{{"1": {10**400}}}',
        '{"999999999": 1}',
        f'{{"{10**30}": 1}}',
        f'{{"{"9" * 5000}": 1}}',
    ),
}
"""Raw JSON, because most of these values cannot be written in another way."""

BAD_VALUES_OF: dict[str, dict[str, tuple[str, ...]]] = {
    COMPLETIONS: {
        "echo": NOT_BOOLEANS,
        "suffix": ("1", "true", "[]", "{}", '["x"]', '"\\ud800"'),
        "logprobs": (*NOT_NUMBERS, *NOT_FINITE, "1.5", "1.0", "-1", "21", "1000000"),
        "best_of": (*NOT_NUMBERS, *NOT_FINITE, "1.5", "1.0", "0", "-1", "129", "1000000"),
    },
    CHAT: {
        "logprobs": NOT_BOOLEANS,
        "top_logprobs": (*NOT_NUMBERS, *NOT_FINITE, "1.5", "-1", "0", "5", "21"),
        "reasoning_effort": ("1", "true", "[]", "{}", '""', '"max"', '"None"'),
        "chat_template_kwargs": (
            "1",
            "true",
            '"x"',
            "[]",
            '{"a": NaN}',
            '{"a": "\\ud800"}',
            '{"messages": []}',
            '{"a": 1, "tools": null}',
            '{"bos_token": ""}',
            '{"eos_token": "x"}',
        ),
        **BAD_TOOL_FIELDS,
    },
}
"""Those of fields that one endpoint has, or that each has in its own form."""

BAD_PROMPTS = (
    "null",
    "1",
    "1.5",
    "true",
    "{}",
    "NaN",
    "[]",
    "[[]]",
    "[[1], []]",
    '["a", 1]',
    '[1, "a"]',
    '["a", [1]]',
    "[[1], 1]",
    '[[1], "a"]',
    "[null]",
    "[true]",
    "[1.0]",
    "[1, 1.5]",
    "[[true]]",
    "[[[1]]]",
    "[-1]",
    "[[-1]]",
    "[999999999]",
    "[[1], [999999999]]",
    f"[{10**30}]",
    f"[{10**400}]",
    "[NaN]",
    "[1e999]",
    '["\\ud800"]',
    '"\\udc00 x"',
    json.dumps(["x"] * 257),
    json.dumps([[1]] * 257),
)

BAD_MESSAGES = (
    "null",
    "1",
    "true",
    '"hi"',
    "{}",
    "[]",
    "[1]",
    '["hi"]',
    "[[]]",
    "[null]",
    "[{}]",
    '[{"content": "x"}]',
    '[{"role": "user"}, 1]',
    '[{"role": "robot", "content": "x"}]',
    '[{"role": null, "content": "x"}]',
    '[{"role": 1, "content": "x"}]',
    '[{"role": "User", "content": "x"}]',
    '[{"role": "user", "content": 1}]',
    '[{"role": "user", "content": true}]',
    '[{"role": "user", "content": {}}]',
    '[{"role": "user", "content": NaN}]',
    '[{"role": "user", "content": [1]}]',
    '[{"role": "user", "content": ["x"]}]',
    '[{"role": "user", "content": [{}]}]',
    '[{"role": "user", "content": [{"type": "text"}]}]',
    '[{"role": "user", "content": [{"type": "text", "text": 1}]}]',
    '[{"role": "user", "content": [{"type": "text", "text": null}]}]',
    '[{"role": "user", "content": [{"type": "audio", "text": "x"}]}]',
    '[{"role": "user", "content": [{"type": 1}]}]',
    '[{"role": "user", "content": [{"type": "image_url"}]}]',
    '[{"role": "user", "content": [{"type": "image_url", "image_url": null}]}]',
    '[{"role": "user", "content": [{"type": "image_url", "image_url": "data:image/png;base64,AA=="}]}]',
    '[{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]',
    '[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": 1}}]}]',
    '[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:", "detail": "most"}}]}]',
    '[{"role": "user", "content": "\\ud83d"}]',
    '[{"role": "user", "content": "x", "name": 1}]',
    *BAD_CALLING_MESSAGES,
    '[{"role": "user", "content": "x", "weight": NaN}]',
    '[{"role": "assistant", "content": "x", "reasoning": 1}]',
    '[{"role": "assistant", "content": "x", "reasoning_content": ["x"]}]',
    '[{"role": "assistant", "content": "x", "reasoning": "a", "reasoning_content": "b"}]',
    '[{"role": "user", "content": "x", "reasoning": "a"}]',
    '[{"role": "system", "content": "x", "reasoning_content": "a"}]',
)

ADAPTER_PATHS = (
    "",
    ".",
    "..",
    "/",
    "nothing.gguf",
    "../x.gguf",
    "a/../../x.gguf",
    "%2e%2e/x.gguf",
    "..\\x.gguf",
    "/etc/passwd",
    "/dev/zero",
    "/proc/self/environ",
    "~/x.gguf",
    "x\0.gguf",
    "\0",
    "http://127.0.0.1/x.gguf",
    "file:///etc/passwd",
    "hf:owner/repository",
    "hf:",
    "x" * 100_000,
    "a/" * 5_000,
)
"""Where no adapter of a folder can be."""

IMAGE_URLS = ("", "data:image/png;base64,AA==", "http://127.0.0.1/", "file:///etc/passwd", "ftp://x", "x" * 100_000)
"""At none of these is an image, whether the model sees images or not."""

TOGETHER: tuple[tuple[str, str, str], ...] = (
    (COMPLETIONS, "max_completion_tokens", '"max_tokens": 1, "max_completion_tokens": 2'),
    (COMPLETIONS, "min_tokens", '"max_tokens": 3, "min_tokens": 4'),
    (COMPLETIONS, "min_tokens", '"max_completion_tokens": 0, "min_tokens": 1'),
    (COMPLETIONS, "best_of", '"n": 2, "best_of": 1'),
    (COMPLETIONS, "best_of", '"best_of": 2, "stream": true'),
    (COMPLETIONS, "best_of", '"n": 2, "best_of": 3, "stream": true'),
    (COMPLETIONS, "suffix", '"echo": true, "suffix": "x"'),
    (COMPLETIONS, "suffix", '"echo": true, "suffix": ""'),
    (COMPLETIONS, "stream_options", '"stream": true, "stream_options": {"include_usage": 1}'),
    (COMPLETIONS, "stream_options", '"stream": null, "stream_options": {}'),
    (CHAT, "top_logprobs", '"logprobs": false, "top_logprobs": 1'),
    (CHAT, "top_logprobs", '"logprobs": null, "top_logprobs": 0'),
    (CHAT, "top_logprobs", '"loglikelihood": true, "top_logprobs": 1'),
    (CHAT, "top_logprobs", '"logprobs": true, "top_logprobs": 21'),
    (CHAT, "top_logprobs", '"logprobs": true, "top_logprobs": -1'),
    (CHAT, "top_logprobs", '"logprobs": true, "top_logprobs": true'),
    *((CHAT, field, fields) for field, fields in BAD_TOGETHER),
)
"""Path, the field at fault, and fields that do not go together."""

NOT_JSON = (
    "",
    " ",
    "\n",
    "null",
    "true",
    "1",
    '"x"',
    "[]",
    "[{}]",
    "{",
    "}",
    "{]",
    "{'a': 1}",
    "{a: 1}",
    '{"a"}',
    '{"a": }',
    '{"a": 1,}',
    '{"a": 01}',
    '{"a": +1}',
    '{"a": .5}',
    '{"a": 1.}',
    '{"a": 0x1}',
    '{"a": "\t"}',
    '{"a": "\\x"}',
    '{"a": "\\u12"}',
    '{"a": "x}',
    "NaN",
    "\x00",
)
NOT_UTF8 = {
    "bad byte": b'{"model": "\xff"}',
    "bad byte in a name": b'{"\xc3": 1}',
    "cut character": b'{"model": "\xe2\x82"}',
    "overlong": b'{"model": "\xc0\xaf"}',
    "surrogate in UTF-8": b'{"model": "\xed\xa0\x80"}',
    "UTF-16": '{"model": "x"}'.encode("utf-16"),
    "UTF-32": '{"model": "x"}'.encode("utf-32"),
    "latin-1": '{"model": "é"}'.encode("latin-1"),
    "gzip without a header": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03",
}
NO_PATHS = (
    "/v1",
    "/v1/",
    "/v1/completion",
    "/v1/completions/",
    "/v2/completions",
    "//v1/completions",
    "/%00",
    "/health/x",
    "/v1/chat",
    "/docs/x",
    "/..%2f..%2fetc%2fpasswd",
)

OTHER_MEDIA = (
    "text/plain",
    "text/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/xml",
    "application/jsonx",
    "",
    "application/json; charset=latin-1",
    "application/json; charset=utf-16",
)


def bad_inputs(model: str, *, max_body: int = 8 * 2**20) -> list[BadInput]:
    """All cases, for a server that serves `model` with fewer than 999999999 tokens in its vocabulary."""
    good = {COMPLETIONS: _object(model=model, prompt="x"), CHAT: _object(model=model, messages=[_user("x")])}
    return list(
        chain(
            *(_field_cases(path, text) for path, text in good.items()),
            _value_cases(COMPLETIONS, _object(model=model), "prompt", BAD_PROMPTS),
            _value_cases(CHAT, _object(model=model), "messages", BAD_MESSAGES),
            (_together_case(path, good[path], param, fields) for path, param, fields in TOGETHER),
            _single_cases(model),
            _image_cases(model),
            _tokenize_cases(model),
            _adapter_cases(),
            _text_cases(good[COMPLETIONS]),
            _depth_cases(good[COMPLETIONS]),
            _transfer_cases(good[COMPLETIONS].encode(), max_body),
            _route_cases(good[COMPLETIONS].encode()),
        )
    )


async def send(client: httpx.AsyncClient, case: BadInput) -> httpx.Response:
    content = _chunked(case.body) if case.is_chunked else case.body
    return await client.request(case.method, case.path, content=content, headers=case.headers)


async def _chunked(body: bytes, size: int = 2**16) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


def _object(**fields: Any) -> str:
    return json.dumps(fields)


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _with(text: str, raw_fields: str) -> bytes:
    """The object with more fields; a later field of the same name wins."""
    return f"{text[:-1]}, {raw_fields}}}".encode()


def _field_cases(path: str, good: str) -> Iterator[BadInput]:
    for name, values in chain(BAD_VALUES.items(), BAD_VALUES_OF[path].items()):
        yield from _value_cases(path, good, name, values)
    for name in ("model", "prompt" if path == COMPLETIONS else "messages"):
        fields = {key: value for key, value in json.loads(good).items() if key != name}
        yield BadInput(f"{path} without {name}", 422, name, path=path, body=_object(**fields).encode())


def _value_cases(path: str, good: str, name: str, values: tuple[str, ...]) -> Iterator[BadInput]:
    for value in values:
        shown = value if len(value) <= 120 else f"{value[:110]}… ({len(value)} characters)"
        yield BadInput(f"{path} {name}={shown}", 422, name, path=path, body=_with(good, f'"{name}": {value}'))


def _together_case(path: str, good: str, param: str, fields: str) -> BadInput:
    return BadInput(f"{path} {fields}", 422, param, path=path, body=_with(good, fields))


def _single_cases(model: str) -> Iterator[BadInput]:
    good = _object(model=model, prompt="x")
    yield BadInput("unknown model", 404, "model", body=_object(model="nobody", prompt="x").encode())
    yield BadInput("model of 100 kB", 404, "model", body=_object(model="m" * 100_000, prompt="x").encode())
    yield BadInput("empty model", 404, "model", body=_object(model="", prompt="x").encode())
    yield BadInput(
        "chat, unknown model", 404, "model", path=CHAT, body=_object(model="m", messages=[_user("x")]).encode()
    )
    for name in ("nobody", "", "p" * 100_000):
        yield BadInput(f"adapter {name[:10]!r}", 404, "peft", body=_object(model=model, prompt="x", peft=name).encode())
        yield BadInput(
            f"model and adapter {name[:10]!r}", 404, "model", body=_object(model=f"{model}:{name}", prompt="x").encode()
        )
    yield BadInput("model of a million colons", 404, "model", body=_object(model=":" * 2**20, prompt="x").encode())
    yield BadInput("17 stop strings", 422, "stop", body=_with(good, f'"stop": {json.dumps(["x"] * 17)}'))
    yield BadInput("a stop string of 257", 422, "stop", body=_with(good, f'"stop": {json.dumps("x" * 257)}'))
    yield BadInput("500000 stop strings", 422, "stop", body=_with(good, f'"stop": {json.dumps(["x"] * 500_000)}'))
    yield BadInput(
        "prompt beyond the context", 400, "prompt", body=_object(model=model, prompt="x y " * 500_000).encode()
    )
    yield BadInput("ids beyond the context", 400, "prompt", body=_object(model=model, prompt=[1] * 200_000).encode())
    body = _object(model=model, messages=[_user("x y " * 500_000)]).encode()
    yield BadInput("messages beyond the context", 400, "messages", path=CHAT, body=body)
    body = _object(model=model, messages=[_user("x")] * 10_001).encode()
    yield BadInput("10001 messages", 422, "messages", path=CHAT, body=body)
    yield BadInput(
        "100000 bad messages", 422, "messages", path=CHAT, body=_object(model=model, messages=[1] * 100_000).encode()
    )


def _image_cases(model: str) -> Iterator[BadInput]:
    def showing(*urls: str) -> bytes:
        parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
        return _object(model=model, messages=[{"role": "user", "content": parts}]).encode()

    for url in IMAGE_URLS:
        yield BadInput(f"image at {url[:40]!r}", 400, "messages", path=CHAT, body=showing(url))
    yield BadInput("1000 images", 422, "messages", path=CHAT, body=showing(*["data:"] * 1000))


def _tokenize_cases(model: str) -> Iterator[BadInput]:
    tokenize, detokenize = "/v1/tokenize", "/v1/detokenize"
    yield from _value_cases(
        tokenize, _object(model=model), "text", ("null", "1", "true", "[]", "{}", '"\\ud800"', '["x"]')
    )
    yield from _value_cases(tokenize, _object(model=model, text="x"), "add_special_tokens", ("1", '"true"', "[]"))
    tokens = (
        "null",
        "1",
        '"x"',
        "{}",
        "[true]",
        "[1.0]",
        '["1"]',
        "[[1]]",
        "[null]",
        "[-1]",
        "[999999999]",
        f"[{10**400}]",
        "[NaN]",
    )
    yield from _value_cases(detokenize, _object(model=model), "tokens", tokens)
    yield BadInput("tokenize without text", 422, "text", path=tokenize, body=_object(model=model).encode())
    yield BadInput("detokenize without tokens", 422, "tokens", path=detokenize, body=_object(model=model).encode())
    yield BadInput(
        "tokenize, unknown model", 404, "model", path=tokenize, body=_object(model="nobody", text="x").encode()
    )
    yield BadInput(
        "detokenize, unknown model", 404, "model", path=detokenize, body=_object(model="nobody", tokens=[]).encode()
    )


def _adapter_cases() -> Iterator[BadInput]:
    good = _object(id="x", path="x.gguf")
    ids = ("null", "1", "[]", '""', '"-x"', '" x"', '"x y"', '"x\\n"', '"é"', '"x=y"', f'"{"x" * 201}"')
    yield from _value_cases(ADAPTERS, good, "id", ids)
    yield from _value_cases(ADAPTERS, good, "path", ("null", "1", "[]", "{}", '"\\ud800"'))
    yield from _value_cases(ADAPTERS, good, "scale", ("true", '"1"', "[]", "NaN", "1e999", "100.1", "-101"))
    yield from _value_cases(ADAPTERS, good, "model", ("1", "[]", "{}"))
    for path in ADAPTER_PATHS:
        body = _object(id="x", path=path).encode()
        yield BadInput(f"adapter at {path[:40]!r} of {len(path)}", 400, "path", path=ADAPTERS, body=body)
    yield BadInput("adapter of an unknown model", 404, "model", path=ADAPTERS, body=_with(good, '"model": "nobody"'))
    for id in ("nobody", "", "a/b", "%2e%2e"):
        yield BadInput(f"DELETE of adapter {id!r}", 404, method="DELETE", path=f"{ADAPTERS}/{id}", headers={})


def _text_cases(good: str) -> Iterator[BadInput]:
    spoilt = ("\ufeff" + good, good + "x", good + good, good + "\x00", good + "]", good[:-1], "// x\n" + good)
    for text in chain(NOT_JSON, spoilt):
        yield BadInput(f"body {text[:40]!r} of {len(text)}", 422, body=text.encode())
    for name, body in NOT_UTF8.items():
        yield BadInput(name, 422, body=body)
    yield BadInput("surrogate as a name", 422, body=b'{"\\ud800": 1}')
    yield BadInput("surrogate in an unknown field", 422, "x", body=_with(good, '"x": ["\\ud800"]'))
    yield BadInput("surrogate as a nested name", 422, "x", body=_with(good, '"x": {"\\ud800": 1}'))
    yield BadInput("NaN in an unknown field", 422, "x", body=_with(good, '"x": {"y": [NaN]}'))


def _depth_cases(good: str) -> Iterator[BadInput]:
    for depth in (65, 200, 100_000):
        for opening, closing in (("[", "]"), ('{"a":', "}")):
            inner = opening * (depth - 1) + "1" + closing * (depth - 1)
            yield BadInput(f"{depth} levels of {opening}", 422, body=_with(good, f'"x": {inner}'))
        yield BadInput(f"{depth} brackets, never closed", 422, body=b"[" * depth)


def _transfer_cases(good: bytes, max_body: int) -> Iterator[BadInput]:
    for is_chunked in (False, True):
        how = "chunked" if is_chunked else "whole"
        yield BadInput(f"a byte too many, {how}", 413, body=good.ljust(max_body + 1), is_chunked=is_chunked)
        yield BadInput(f"twice the bytes, {how}", 413, body=bytes(2 * max_body), is_chunked=is_chunked)
    for media in OTHER_MEDIA:
        yield BadInput(f"content-type {media!r}", 415, body=good, headers={"content-type": media})
    for encoding in ("gzip", "deflate", "br", "zstd", "identity, gzip", "x"):
        headers = {**JSON, "content-encoding": encoding}
        yield BadInput(f"content-encoding {encoding!r}", 415, body=good, headers=headers)


def _route_cases(body: bytes) -> Iterator[BadInput]:
    for path in NO_PATHS:
        yield BadInput(f"GET {path}", 404, method="GET", path=path, headers={})
        yield BadInput(f"POST {path}", 404, path=path, body=body)
    yield BadInput("GET of an unknown model", 404, "model", method="GET", path="/v1/models/nobody", headers={})
    for method in ("GET", "PUT", "PATCH", "DELETE", "OPTIONS"):
        for path in (COMPLETIONS, CHAT, "/v1/tokenize", "/v1/detokenize"):
            yield BadInput(f"{method} {path}", 405, method=method, path=path, headers={})
    for path in ("/health", "/ready", "/metrics", "/v1/models", "/openapi.json", "/docs"):
        yield BadInput(f"POST {path}", 405, path=path, body=body)
