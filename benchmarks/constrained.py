"""What structured output costs: the same prompts with a schema and without, in turns, on one server; and what schemas
that take long to compile do to the largest gap of streams beside them.

python -m benchmarks.constrained
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.compare import demo_model
from benchmarks.http_client import Server, fetch_json
from benchmarks.load import LoadConfig, run_load
from benchmarks.load_result import LoadResult
from benchmarks.peers import PEERS
from benchmarks.processes import ServerCommand, run_until_stopped, running
from benchmarks.schemas import PEOPLE, response_format

ROUNDS = 3
STREAM_COUNTS = (1, 32)
HEALTHY_STREAMS = 4
NUM_FIELDS = 350
"""Of a schema near the limit of 64 KiB."""


def large_schemas() -> Iterator[dict[str, Any]]:
    """Each another one, so that none is known already."""
    for number in count():
        fields = {
            f"field_{number}_{index}": {"type": "string", "pattern": f"^[a-z]{{1,{20 + index % 40}}}(-[0-9]{{2,9}})*$"}
            for index in range(NUM_FIELDS)
        }
        yield {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


async def throughput(url: str) -> None:
    """Print tokens per second without and with a schema, and the median of the ratios."""
    free = LoadConfig(url=url, ignore_eos=True)
    schema = replace(free, extra=response_format(PEOPLE))
    for num_streams in STREAM_COUNTS:
        ratios = []
        for number in range(ROUNDS):
            turn = [replace(each, num_streams=num_streams, seed=number) for each in (free, schema)]
            rates: dict[bool, float] = {}
            for config in turn if number % 2 == 0 else reversed(turn):
                result = await run_load(config)
                _check(result)
                rates[bool(config.extra)] = result.output_tokens_per_second
            ratios.append(rates[True] / rates[False])
            print(
                f"{num_streams} streams: {rates[False]:.1f} tokens/s free, {rates[True]:.1f} under a schema", flush=True
            )
        print(f"{num_streams} streams: ratio {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})")


async def gaps(url: str) -> None:
    """Print the largest gap of healthy streams beside short requests, with and without large schemas."""
    schemas = large_schemas()
    for number in range(ROUNDS):
        largest: dict[bool, float] = {}
        for has_schema in (False, True):
            healthy = LoadConfig(
                url=url, num_streams=HEALTHY_STREAMS, num_requests=HEALTHY_STREAMS, max_tokens=160, ignore_eos=True,
                seed=number,
            )  # fmt: skip
            load = asyncio.create_task(run_load(healthy))
            num_sent = await _disturb(url, load, schemas if has_schema else None)
            result = await load
            _check(result)
            largest[has_schema] = result.largest_gap_ms
            print(f"largest gap {result.largest_gap_ms:.0f} ms beside {num_sent} requests, large schemas: {has_schema}")
        print(f"ratio of the largest gaps: {largest[True] / largest[False]:.2f}", flush=True)


async def _disturb(url: str, load: asyncio.Task[LoadResult], schemas: Iterator[dict[str, Any]] | None) -> int:
    """Short requests, one after the other, as long as the load runs. Returns their number."""
    server = Server.from_url(url, None)
    _, models = await fetch_json(server, "GET", "/v1/models")
    assert models is not None
    num_sent = 0
    while not load.done():
        body = {"model": models["data"][0]["id"], "prompt": f"Request {num_sent}:", "max_tokens": 2}
        body |= response_format(next(schemas)) if schemas is not None else {}
        status, answer = await fetch_json(server, "POST", "/v1/completions", body)
        assert status == 200, answer
        num_sent += 1
    return num_sent


def _check(result: LoadResult) -> None:
    if result.errors:
        sys.exit(f"requests failed: {result.errors}")


async def main(model: Path) -> None:
    arguments = (sys.executable, "-m", "octavo", "serve", str(model), "--port", "{port}", "--ctx", "1024")
    async with running(
        ServerCommand("octavo", arguments, ready_path="/ready"), PEERS / "logs" / "constrained.log"
    ) as url:
        await run_load(LoadConfig(url=url, num_streams=8, max_tokens=16, seed=1_000_003, extra=response_format(PEOPLE)))
        await throughput(url)
        await gaps(url)


if __name__ == "__main__":
    run_until_stopped(main(demo_model()))
