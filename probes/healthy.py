"""The client that does nothing wrong: one stream of 32 tokens after the other, always the same one.

python -m probes.healthy TARGET
"""

import asyncio
import sys
import time
from itertools import pairwise

import msgspec
from benchmarks.completion_stream import CompletionError, StreamReader
from benchmarks.http_client import Connection, Server

from probes.companion import accompany
from probes.target import Target

NUM_TOKENS = 32
SCRIPT = '@script {"text": "The fox. The dog. ", "delay": 0.002}'
"""For the scripted engine; to a model it is a text like others."""
PAUSE = 0.05
"""Seconds after a failure, before it tries again."""


class Health(msgspec.Struct):
    """What it saw in a time: seconds to the first token, between tokens, and for whole streams.
    num_wrong: streams with another text than at rest. num_failed: those that ended otherwise, or were refused."""

    first_tokens: list[float] = []
    gaps: list[float] = []
    totals: list[float] = []
    num_wrong: int = 0
    num_failed: int = 0
    failures: list[str] = []

    @property
    def num_streams(self) -> int:
        return len(self.totals)


def request_body(model: str) -> bytes:
    return msgspec.json.encode(
        {
            "model": model,
            "prompt": f"{SCRIPT}\nOnce upon a time",
            "max_tokens": NUM_TOKENS,
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
        }
    )


async def stream_once(server: Server, body: bytes) -> StreamReader:
    """Raises OSError and CompletionError."""
    reader = StreamReader(time.perf_counter())
    with await Connection.open(server) as connection:
        status = await connection.send("POST", "/v1/completions", body, is_kept=False)
        if status != 200:
            raise CompletionError(f"status {status}")
        async for data in connection.body():
            reader.push(data)
    return reader


async def text_at_rest(server: Server, body: bytes) -> str:
    return (await stream_once(server, body)).finish().text


async def watch(server: Server, body: bytes, expected: str, is_over: asyncio.Event) -> Health:
    health = Health()
    while not is_over.is_set():
        try:
            completion = (await stream_once(server, body)).finish()
        except (OSError, CompletionError) as error:
            health.num_failed += 1
            health.failures = [*health.failures, str(error)][:5]
            await asyncio.sleep(PAUSE)
            continue
        times = completion.text_times
        health.first_tokens.append(completion.time_to_first_token)
        health.gaps += [after - before for before, after in pairwise(times)]
        health.totals.append(times[-1] - completion.started)
        health.num_wrong += completion.text != expected
    return health


async def main() -> None:
    target = msgspec.json.decode(sys.argv[1], type=Target)
    server = Server.from_url(target.url, target.keys[-1] if target.keys else None)
    body = request_body(target.model)
    expected = await text_at_rest(server, body)

    async def work(is_over: asyncio.Event) -> Health:
        return await watch(server, body, expected, is_over)

    await accompany(expected, work)


if __name__ == "__main__":
    asyncio.run(main())
