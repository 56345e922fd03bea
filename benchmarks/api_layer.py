"""What streaming costs without a model: the scripted engine behind the whole server, and beside it a bare loop.

python -m benchmarks.api_layer --streams 100 500

A server's figure is the tokens that its API process streams in a second of its own CPU time, which is what one core
could do, and is the same on a busy machine. The engine's process and the load generator are counted apart.
"""

from __future__ import annotations

import argparse
import asyncio
import pstats
import statistics
import sys
from asyncio.subprocess import PIPE
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import msgspec
import psutil

from benchmarks.event_load import READY, Counts, LoadFailed
from benchmarks.peers import PEERS
from benchmarks.processes import ServerCommand, ServerFailed, run_until_stopped, running

ENGINE_MODULE = "octavo.engine"
PROFILE_ROWS = 40
BARE = ServerCommand(
    "bare loop", (sys.executable, "-m", "benchmarks.bare_stream", "--port", "{port}"), ready_path="/ready"
)


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """CPU seconds of a server's processes: the one that answers HTTP, and the engine's where it has one."""

    api: float
    engine: float

    @classmethod
    def of(cls, server: psutil.Process) -> Self:
        workers = [child for child in server.children() if ENGINE_MODULE in child.cmdline()]
        return cls(_cpu_seconds(server), sum(map(_cpu_seconds, workers)))


@dataclass(frozen=True, slots=True)
class Measurement:
    """One load on one server."""

    server: str
    num_streams: int
    num_tokens: int
    counts: Counts
    cpu: CpuTimes

    @property
    def tokens_per_api_second(self) -> float:
        return self.num_tokens / self.cpu.api

    @property
    def cells(self) -> list[float]:
        tokens = self.num_tokens
        return [
            self.tokens_per_api_second,
            1e6 * self.cpu.api / tokens,
            1e6 * self.cpu.engine / tokens,
            1e6 * self.counts.cpu_seconds / tokens,
            (self.counts.events - self.num_streams) / tokens,  # less each answer's [DONE]
            self.counts.reads / tokens,
            tokens / self.counts.wall_seconds,
        ]


def octavo(num_streams: int, delay: float, profile: Path | None) -> ServerCommand:
    """The scripted engine with a slot for each stream; profile: where its API process writes one."""
    profiler = ("-m", "cProfile", "-o", str(profile)) if profile else ()
    flags = ("--slots", str(num_streams), "--delay", str(delay))
    server = ("-m", "benchmarks.scripted_server", "--port", "{port}", *flags)
    return ServerCommand("octavo", (sys.executable, *profiler, *server), ready_path="/ready")


async def measure(command: ServerCommand, num_streams: int, max_tokens: int) -> Measurement:
    """Start the server, load it once, stop it. Raises ServerFailed and LoadFailed."""
    log = PEERS / "logs" / f"api-layer-{command.name.replace(' ', '-')}.log"
    async with running(command, log) as url:
        port = urlsplit(url).port
        server = _listening_process(port)
        load = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.event_load", "--port", str(port)),
            *("--streams", str(num_streams), "--max-tokens", str(max_tokens)),
            stdin=PIPE,
            stdout=PIPE,
        )
        assert load.stdin is not None
        assert load.stdout is not None
        if (await load.stdout.readline()).decode().strip() != READY:
            raise LoadFailed("The load generator ended before it began.")
        before = CpuTimes.of(server)
        load.stdin.write(b"\n")
        answer = await load.stdout.readline()
        after = CpuTimes.of(server)
        if await load.wait() != 0:
            raise LoadFailed("The load generator gave up.")
    cpu = CpuTimes(after.api - before.api, after.engine - before.engine)
    counts = msgspec.json.decode(answer, type=Counts)
    return Measurement(command.name, num_streams, num_streams * max_tokens, counts, cpu)


def _listening_process(port: int | None) -> psutil.Process:
    for connection in psutil.net_connections("tcp"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
            return psutil.Process(connection.pid)
    raise ServerFailed(f"nothing listens on port {port}")


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def table(measurements: Sequence[Measurement]) -> str:
    """Medians of the rounds as Markdown."""
    rounds: defaultdict[tuple[str, int], list[Measurement]] = defaultdict(list)
    for measurement in measurements:
        rounds[measurement.server, measurement.num_streams].append(measurement)
    lines = [
        "| server | streams | tokens/s of one core | lowest–highest | API, µs a token | engine, µs | load, µs "
        "| events a token | reads a token | tokens/s by the clock |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (server, num_streams), group in rounds.items():
        rates = [each.tokens_per_api_second for each in group]
        rate, *rest, clock = [statistics.median(column) for column in zip(*(m.cells for m in group), strict=True)]
        cells = " | ".join(f"{value:.2f}" for value in rest)
        spread = f"{min(rates):,.0f}–{max(rates):,.0f}"
        lines.append(f"| {server} | {num_streams} | {rate:,.0f} | {spread} | {cells} | {clock:,.0f} |")
    return "\n".join(lines)


async def compare(options: argparse.Namespace) -> None:
    """Both servers in turns, for each number of streams."""
    measurements = []
    for number in range(options.rounds):
        for num_streams in options.streams:
            commands = [octavo(num_streams, options.delay, None), BARE]
            for command in commands if number % 2 == 0 else reversed(commands):
                measurements.append(await measure(command, num_streams, options.max_tokens))
    print(table(measurements))


async def profile(options: argparse.Namespace) -> None:
    """Octavo alone, under a profiler that makes it several times slower: shares mean something, times do not."""
    for num_streams in options.streams:
        path = options.profile.with_name(f"{options.profile.name}-{num_streams}.prof")
        await measure(octavo(num_streams, options.delay, path), num_streams, options.max_tokens)
        pstats.Stats(str(path)).sort_stats("tottime").print_stats(PROFILE_ROWS)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.api_layer", description=__doc__)
    add = parser.add_argument
    add("--streams", type=int, nargs="+", default=[100, 500])
    add("--max-tokens", type=int, default=200, help="of each answer; each token has four bytes of text")
    add("--delay", type=float, default=0.0, help="seconds between a stream's tokens; 0 is as fast as they are taken")
    add("--rounds", type=int, default=3)
    add("--profile", type=Path, metavar="PATH", help="write PATH-STREAMS.prof of Octavo's API process, and its head")
    return parser


def main() -> None:
    """Read the options, measure, print a table."""
    options = _parser().parse_args()
    run_until_stopped(profile(options) if options.profile else compare(options))


if __name__ == "__main__":
    main()
