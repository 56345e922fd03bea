"""Load on any server with OpenAI's completions or chat endpoint, and what it took.

python -m benchmarks.load --url http://127.0.0.1:8080 --streams 8
"""

from __future__ import annotations

import argparse
import asyncio
import math
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import httptools
import msgspec
import uvloop

from benchmarks.client import Client
from benchmarks.completion_stream import Completion, CompletionError
from benchmarks.http_client import Server, fetch_json
from benchmarks.load_result import LoadResult, Sent, format_result
from benchmarks.prompts import find_token_counter, make_prompts

FAILURES = (OSError, CompletionError, httptools.HttpParserError, msgspec.DecodeError)
MAX_ERROR_CHARACTERS = 300
NOT_SENT = "not sent"


class Endpoint(StrEnum):
    COMPLETIONS = "completions"
    CHAT = "chat"


class Connections(StrEnum):
    FRESH = "fresh"
    KEPT = "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadConfig:
    """What to send: num_requests requests, num_streams of them at a time. extra: further fields of each.

    repeats: how often each prompt is sent in a row. texts: prompts to send in turn, in place of random words.
    """

    url: str
    model: str | None = None
    endpoint: Endpoint = Endpoint.COMPLETIONS
    num_streams: int = 1
    num_requests: int | None = None
    prompt_tokens: int = 104
    shared_prefix_tokens: int = 0
    repeats: int = 1
    texts: tuple[str, ...] = ()
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

    @property
    def path(self) -> str:
        return "/v1/chat/completions" if self.endpoint is Endpoint.CHAT else "/v1/completions"

    def request_body(self, model: str, prompt: str) -> bytes:
        """The JSON of one streamed request; to a chat, the prompt is what the user says."""
        if self.endpoint is Endpoint.CHAT:
            return self.encode(model, {"messages": [{"role": "user", "content": prompt}]})
        return self.encode(model, {"prompt": prompt})

    def encode(self, model: str, content: dict[str, object]) -> bytes:
        """The JSON of one streamed request for what content asks."""
        body: dict[str, object] = {
            "model": model,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self.ignore_eos:
            body["ignore_eos"] = True
        return msgspec.json.encode(body | content | self.extra)


async def run_load(config: LoadConfig) -> LoadResult:
    """Make the prompts, send the load, wait for all answers.

    Failed requests are counted in the result. Raises OSError or LookupError when the server cannot name its models.
    """
    server = Server.from_url(config.url, config.api_key)
    model = config.model or await first_model(server)
    prompts = await make_load_prompts(config, server, model)
    sent = await send(config, server, [config.request_body(model, prompt) for prompt in prompts])
    return sent.summarize(model, config.num_streams)


async def send(
    config: LoadConfig, server: Server, bodies: Sequence[bytes], on_first_text: Callable[[], object] = lambda: None
) -> Sent:
    """Send requests, config.num_streams of them at a time, and wait for all answers; outcomes are in the bodies' order.

    on_first_text is called for each answer that begins.
    """
    outcomes: list[Completion | str] = [NOT_SENT] * len(bodies)
    requests = iter(enumerate(bodies))
    cpu_before, wall_before = _cpu_seconds(), time.perf_counter()
    streams = (_run_stream(config, server, requests, outcomes, on_first_text) for _ in range(config.num_streams))
    await asyncio.gather(*streams)
    return Sent(outcomes, time.perf_counter() - wall_before, _cpu_seconds() - cpu_before)


async def first_model(server: Server) -> str:
    """The id of the server's first model. Raises LookupError where it names none."""
    status, answer = await fetch_json(server, "GET", "/v1/models")
    if status != 200 or not answer or not answer.get("data"):
        raise LookupError(f"/v1/models answered {status} and names no model; give one with --model")
    return str(answer["data"][0]["id"])


async def make_load_prompts(config: LoadConfig, server: Server, model: str) -> list[str]:
    """The prompt of each request, measured by the server's own tokenizer."""
    if config.texts:
        return [config.texts[index % len(config.texts)] for index in range(config.total_requests)]
    # A chat template adds special tokens of its own, so there a prompt's length is that of its text alone.
    is_chat = config.endpoint is Endpoint.CHAT
    count = await find_token_counter(server, model, add_special_tokens=not is_chat)
    if count is None:
        print("The server does not tokenize: prompts are measured in words.", file=sys.stderr)
    num_prompts = math.ceil(config.total_requests / config.repeats)
    prompts = await make_prompts(config.seed, num_prompts, config.prompt_tokens, config.shared_prefix_tokens, count)
    return [prompts[index // config.repeats] for index in range(config.total_requests)]


async def _run_stream(
    config: LoadConfig,
    server: Server,
    requests: Iterator[tuple[int, bytes]],
    outcomes: list[Completion | str],
    on_first_text: Callable[[], object],
) -> None:
    """One client: its next request starts when its last one has ended."""
    keeps_connection = config.connections is Connections.KEPT
    with Client(server, config.path, keeps_connection=keeps_connection, on_first_text=on_first_text) as client:
        for index, body in requests:
            try:
                async with asyncio.timeout(config.timeout_seconds):
                    outcomes[index] = await client.complete(body)
            except FAILURES as error:
                outcomes[index] = f"{type(error).__name__}: {error}"[:MAX_ERROR_CHARACTERS]


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


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
