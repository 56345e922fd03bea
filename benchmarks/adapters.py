"""What adapters cost: requests with one beside requests without, in turns with all of one kind, on one server each.

python -m benchmarks.adapters ADAPTER.gguf [--peer]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.compare import demo_model
from benchmarks.contenders import Room, octavo
from benchmarks.load import LoadConfig, run_load
from benchmarks.load_result import LoadResult
from benchmarks.peers import PEERS, build_llama_server, llama_server
from benchmarks.processes import ServerCommand, run_until_stopped, running

ROUNDS = 5
NUM_STREAMS = 8
CONTEXT = 1024


@dataclass(frozen=True, slots=True)
class Contender:
    """fields: of a request, by whether it is computed with the adapter."""

    command: ServerCommand
    fields: Callable[[bool], dict[str, object]]


def octavo_contender(model: Path, adapter: Path) -> Contender:
    flags = ("--ctx", str(CONTEXT), "--adapter", f"adapter={adapter}")
    return Contender(
        octavo(model, flags).command(Room(NUM_STREAMS, CONTEXT)), lambda adapts: {"peft": "adapter"} if adapts else {}
    )


def llama_server_contender(model: Path, adapter: Path) -> Contender:
    command = llama_server(
        build_llama_server(), model, "defaults", NUM_STREAMS, CONTEXT, ("--lora", str(adapter), "--no-webui")
    )
    return Contender(command, lambda adapts: {"lora": [{"id": 0, "scale": float(adapts)}]})


async def rate(base: LoadConfig, loads: list[tuple[int, dict[str, object]]]) -> float:
    """Tokens per second of loads at the same time, each of so many streams with further fields."""
    started = time.perf_counter()
    configs = [
        replace(base, num_streams=streams, extra=extra, seed=base.seed + 1000 * index)
        for index, (streams, extra) in enumerate(loads)
    ]
    results = await asyncio.gather(*map(run_load, configs))
    for result in results:
        _check(result)
    return sum(result.completion_tokens for result in results) / (time.perf_counter() - started)


async def measure(contender: Contender) -> None:
    """Print the rates without, with and half with the adapter, and the ratios to those without."""
    log = PEERS / "logs" / "adapters.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    without, adapted = contender.fields(False), contender.fields(True)
    kinds = {
        "without": [(NUM_STREAMS, without)],
        "with": [(NUM_STREAMS, adapted)],
        "half": [(NUM_STREAMS // 2, without), (NUM_STREAMS // 2, adapted)],
    }
    async with running(contender.command, log) as url:
        base = LoadConfig(url=url, ignore_eos=True)
        await rate(replace(base, seed=1_000_003, max_tokens=16), kinds["half"])
        rates: dict[str, list[float]] = {kind: [] for kind in kinds}
        for number in range(ROUNDS):
            order = list(kinds)[number % len(kinds) :] + list(kinds)[: number % len(kinds)]
            for kind in order:
                rates[kind].append(await rate(replace(base, seed=number), kinds[kind]))
    _report(contender.command.name, rates)


def _report(name: str, rates: dict[str, list[float]]) -> None:
    for kind, values in rates.items():
        ratios = [value / base for value, base in zip(values, rates["without"], strict=True)]
        print(
            f"{name}, {NUM_STREAMS} streams, {kind}: {statistics.median(values):.1f} tokens/s, to those without "
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})",
            flush=True,
        )


def _check(result: LoadResult) -> None:
    if result.errors:
        sys.exit(f"requests failed: {result.errors}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adapters", description=__doc__)
    parser.add_argument("adapter", type=Path, help="a LoRA adapter of the model, a .gguf file")
    parser.add_argument("--model", type=Path, help="a .gguf file (default: the model of the demo extra)")
    parser.add_argument("--peer", action="store_true", help="measure llama-server, too")
    options = parser.parse_args()
    model: Path = options.model or demo_model()
    contenders = [octavo_contender(model, options.adapter)]
    if options.peer:
        contenders.append(llama_server_contender(model, options.adapter))
    for contender in contenders:
        run_until_stopped(measure(contender))


if __name__ == "__main__":
    main()
