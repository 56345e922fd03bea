"""Load on any server with OpenAI's completions or chat endpoint, and what it took.

python -m benchmarks.load --url http://127.0.0.1:8080 --streams 8
"""

from __future__ import annotations

import argparse
import asyncio
import math
import resource
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

import httptools
import msgspec
import uvloop

from benchmarks.client import Client
from benchmarks.completion_stream import Completion, CompletionError
from benchmarks.http_client import Server, fetch_json
from benchmarks.prompts import find_token_counter, make_prompts

FAILURES = (OSError, CompletionError, httptools.HttpParserError, msgspec.DecodeError)
MAX_ERROR_CHARACTERS = 300


class Endpoint(StrEnum):
    COMPLETIONS = "completions"
    CHAT = "chat"


class Connections(StrEnum):
    FRESH = "fresh"
    KEPT = "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadConfig:
    """What to send: num_requests requests, num_streams of them at a time. extra: further fields of each."""

    url: str
    model: str | None = None
    endpoint: Endpoint = Endpoint.COMPLETIONS
    num_streams: int = 1
    num_requests: int | None = None
    prompt_tokens: int = 104
    shared_prefix_tokens: int = 0
    max_tokens: int = 64
    temperature: float = 0.8
    top_p: float = 0.95
    ignore_eos: bool = False
    connections: Connections = Connections.FRESH
    seed: int = 0
    timeout_seconds: float = 600.0
    api_key: str | None = field(default=None, repr=False)
    extra: dict[str, object] = field(default_factory=dict)

    @property
    def total_requests(self) -> int:
        return 2 * self.num_streams if self.num_requests is None else self.num_requests

    def request_body(self, model: str, prompt: str) -> bytes:
        """The JSON of one streamed request."""
        body: dict[str, object] = {
            "model": model,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self.endpoint is Endpoint.CHAT:
            body["messages"] = [{"role": "user", "content": prompt}]
        else:
            body["prompt"] = prompt
        if self.ignore_eos:
            body["ignore_eos"] = True
        body |= self.extra
        return msgspec.json.encode(body)


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Milliseconds."""

    median: float
    p99: float

    @classmethod
    def of_seconds(cls, values: list[float]) -> Self | None:
        """The median and the nearest-rank 99th percentile; None of nothing."""
        if not values:
            return None
        rank = math.ceil(0.99 * len(values)) - 1
        return cls(1000 * statistics.median(values), 1000 * sorted(values)[rank])


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult:
    """What a load took. Tokens are those of the requests that were answered whole; `_ms` are milliseconds."""

    model: str
    num_streams: int
    num_requests: int
    num_completed: int
    wall_seconds: float
    prompt_tokens: int | None
    completion_tokens: int
    are_token_counts_exact: bool
    time_to_first_token_ms: Percentiles | None
    time_per_output_token_ms: Percentiles | None
    largest_gap_ms: float
    errors: dict[str, int]
    load_cpu_seconds: float

    @property
    def output_tokens_per_second(self) -> float:
        """Generated tokens by the time of the whole load, so prefill is included."""
        return self.completion_tokens / self.wall_seconds

    def to_dict(self) -> dict[str, object]:
        """The fields and the rate, ready for JSON."""
        fields: dict[str, object] = msgspec.to_builtins(self)
        return {"output_tokens_per_second": self.output_tokens_per_second, **fields}


async def run_load(config: LoadConfig) -> LoadResult:
    """Make the prompts, send the load, wait for all answers.

    Failed requests are counted in the result. Raises OSError or LookupError when the server cannot name its models.
    """
    server = Server.from_url(config.url, config.api_key)
    model = config.model or await first_model(server)
    bodies = [config.request_body(model, prompt) for prompt in await _prompts(config, server, model)]
    completions: list[Completion] = []
    errors: Counter[str] = Counter()
    requests = iter(bodies)

    cpu_before, wall_before = _cpu_seconds(), time.perf_counter()
    streams = (_run_stream(config, server, requests, completions, errors) for _ in range(config.num_streams))
    await asyncio.gather(*streams)
    wall, cpu = time.perf_counter() - wall_before, _cpu_seconds() - cpu_before
    return _summarize(config, model, completions, errors, wall, cpu)


async def first_model(server: Server) -> str:
    """The id of the server's first model. Raises LookupError where it names none."""
    status, answer = await fetch_json(server, "GET", "/v1/models")
    if status != 200 or not answer or not answer.get("data"):
        raise LookupError(f"/v1/models answered {status} and names no model; give one with --model")
    return str(answer["data"][0]["id"])


async def _prompts(config: LoadConfig, server: Server, model: str) -> list[str]:
    # A chat template adds special tokens of its own, so there a prompt's length is that of its text alone.
    is_chat = config.endpoint is Endpoint.CHAT
    count = await find_token_counter(server, model, add_special_tokens=not is_chat)
    if count is None:
        print("The server does not tokenize: prompts are measured in words.", file=sys.stderr)
    return await make_prompts(
        config.seed, config.total_requests, config.prompt_tokens, config.shared_prefix_tokens, count
    )


async def _run_stream(
    config: LoadConfig, server: Server, requests: Iterator[bytes], completions: list[Completion], errors: Counter[str]
) -> None:
    """One client: its next request starts when its last one has ended."""
    path = "/v1/chat/completions" if config.endpoint is Endpoint.CHAT else "/v1/completions"
    with Client(server, path, keeps_connection=config.connections is Connections.KEPT) as client:
        for body in requests:
            try:
                async with asyncio.timeout(config.timeout_seconds):
                    completions.append(await client.complete(body))
            except FAILURES as error:
                errors[f"{type(error).__name__}: {error}"[:MAX_ERROR_CHARACTERS]] += 1


def _summarize(
    config: LoadConfig, model: str, completions: list[Completion], errors: Counter[str], wall: float, cpu: float
) -> LoadResult:
    usages = [completion.usage for completion in completions if completion.usage is not None]
    is_exact = len(usages) == len(completions)
    per_token = [value for completion in completions if (value := completion.time_per_output_token) is not None]
    return LoadResult(
        model=model,
        num_streams=config.num_streams,
        num_requests=config.total_requests,
        num_completed=len(completions),
        wall_seconds=wall,
        prompt_tokens=sum(usage.prompt_tokens for usage in usages) if is_exact else None,
        completion_tokens=sum(completion.num_tokens for completion in completions),
        are_token_counts_exact=is_exact,
        time_to_first_token_ms=Percentiles.of_seconds([c.time_to_first_token for c in completions]),
        time_per_output_token_ms=Percentiles.of_seconds(per_token),
        largest_gap_ms=1000 * max((completion.largest_gap for completion in completions), default=0.0),
        errors=dict(errors),
        load_cpu_seconds=cpu,
    )


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def format_result(result: LoadResult) -> str:
    """The result as lines for people."""

    def milliseconds(values: Percentiles | None) -> str:
        return f"median {values.median:.1f} ms, p99 {values.p99:.1f} ms" if values else "none"

    prompt_tokens = "unknown" if result.prompt_tokens is None else result.prompt_tokens
    source = "by the server's usage" if result.are_token_counts_exact else "counted in chunks"
    answered = f"{result.num_completed} of {result.num_requests} requests answered"
    lines = [
        f"{result.model}: {result.num_streams} streams, {answered}",
        f"output tokens/s      {result.output_tokens_per_second:.1f} (prefill included, {result.wall_seconds:.2f} s)",
        f"time to first token  {milliseconds(result.time_to_first_token_ms)}",
        f"time per token       {milliseconds(result.time_per_output_token_ms)}",
        f"largest gap          {result.largest_gap_ms:.1f} ms",
        f"tokens               {prompt_tokens} prompt, {result.completion_tokens} generated ({source})",
        f"load generator       {result.load_cpu_seconds:.2f} s of CPU",
        f"errors               {sum(result.errors.values())}",
    ]
    return "\n".join(lines + [f"  {count} × {error}" for error, count in result.errors.items()])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--url", default="http://127.0.0.1:8080", help="the server, with or without /v1")
    add("--api-key", help="sent as a bearer token")
    add("--model", help="default: the first of /v1/models")
    add("--endpoint", type=Endpoint, choices=list(Endpoint), default=Endpoint.COMPLETIONS)
    add("--streams", dest="num_streams", type=int, default=1, help="requests in flight at a time")
    add("--requests", dest="num_requests", type=int, help="requests in all (default: 2 × streams)")
    add("--prompt-tokens", type=int, default=104, help="tokens of each prompt that no other one shares")
    add("--shared-prefix", dest="shared_prefix_tokens", type=int, default=0, metavar="TOKENS", help="put before all")
    add("--max-tokens", type=int, default=64)
    add("--temperature", type=float, default=0.8)
    add("--top-p", type=float, default=0.95)
    add("--ignore-eos", action="store_true", help="go on to max-tokens whatever the model says")
    add("--connections", type=Connections, choices=list(Connections), default=Connections.FRESH)
    add("--seed", type=int, default=0, help="of the prompts' text")
    add("--timeout", dest="timeout_seconds", type=float, default=600.0, help="seconds for one request")
    add("--json", action="store_true", help="print the result as JSON")
    return parser


def main() -> None:
    """Read the options, run the load, print the result; exit status 1 when a request failed."""
    options = vars(_parser().parse_args())
    as_json = options.pop("json")
    try:
        result = uvloop.run(run_load(LoadConfig(**options)))
    except (OSError, LookupError, ValueError) as error:
        sys.exit(f"No load was sent: {error}")
    print(msgspec.json.encode(result.to_dict()).decode() if as_json else format_result(result))
    sys.exit(1 if result.errors else 0)


if __name__ == "__main__":
    main()
