"""How the engine's threads should wait for each other: decoding alone, and beside processes that never rest.

    python -m benchmarks.threads --spins 0 1000 100000 default --threads 1 2 chosen --streams 1 8 32

libgomp reads GOMP_SPINCOUNT when it is loaded: how often a thread looks for the others at a barrier before it lets the
kernel wake it. So each setting is measured in a process of its own, and they take turns, `--rounds` times. "chosen"
threads are those of a server: as many as are fastest at start, and fewer while that is faster. The table
has the medians: tokens/s alone, and the share of it that is left beside one and two such processes. By its share, a
thread beside one of two processors' hogs would keep half of its processor. Nothing else may run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from octavo.cli.demo import find_demo_model
from octavo.engine.batching.runner import LONE_CHUNK, ForwardBatch
from octavo.engine.batching.step_costs import MeasuredSteps
from octavo.engine.runners.llama_cpp import binding
from octavo.engine.runners.llama_cpp.context import LlamaRunner
from octavo.engine.runners.llama_cpp.machine import Machine, preferred_cache_types
from octavo.engine.runners.llama_cpp.model import load_model

CONTEXT_LENGTH = 1024
WARM_UP_STEPS = 4
WARM_UP_SECONDS = 6.0
"""Where threads are chosen: until one less has been tried, and perhaps one more."""
HOGS = (0, 1, 2)
DEFAULT = "default"
CHOSEN = "chosen"


@dataclass(frozen=True, slots=True)
class Setting:
    """spins: of GOMP_SPINCOUNT; "default" leaves it to the library. threads: a number, or "chosen"."""

    spins: str
    threads: str

    @property
    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name != "GOMP_SPINCOUNT"}
        return inherited if self.spins == DEFAULT else inherited | {"GOMP_SPINCOUNT": self.spins}


Rates = dict[str, float]
"""Tokens/s by "streams/hogs"."""


def measure_in_child(setting: Setting, options: argparse.Namespace) -> Rates:
    command = [sys.executable, "-m", "benchmarks.threads", "--child", setting.threads]
    command += ["--seconds", str(options.seconds), "--streams", *map(str, options.streams)]
    command += ["--model", str(options.model)] if options.model else []
    done = subprocess.run(command, env=setting.environment, stdout=subprocess.PIPE, check=True)
    rates: Rates = json.loads(done.stdout)
    return rates


def measure(path: Path, threads: str, streams: list[int], seconds: float) -> Rates:
    """In this process, and in its main thread: the only one in which OpenMP's threads wait well."""
    binding.initialize()
    rates = {}
    for number in streams:
        decoder = Decoder(path, number, threads)
        for num_hogs in HOGS:
            with hogs(num_hogs):
                rates[f"{number}/{num_hogs}"] = decoder.tokens_per_second(seconds)
        decoder.close()
    return rates


class Decoder:
    """Decodes one token of each sequence a step, from the first on."""

    def __init__(self, path: Path, num_streams: int, threads: str) -> None:
        here = Machine.detect()
        self._runner = create_runner(path, num_streams, here.num_cores if threads == CHOSEN else int(threads))
        self._tokens = np.arange(100, 100 + num_streams, dtype=np.int32)
        self._slots = np.arange(num_streams, dtype=np.int32)
        self._position = 0
        self._warm_up = 0.0
        if threads == CHOSEN:
            self._warm_up = WARM_UP_SECONDS
            choose_threads(self._runner, here)

    def tokens_per_second(self, seconds: float) -> float:
        for _ in range(WARM_UP_STEPS):
            self._step()
        self._count_steps(self._warm_up)
        started = perf_counter()
        num_steps = self._count_steps(seconds)
        return num_steps * len(self._tokens) / (perf_counter() - started)

    def _count_steps(self, seconds: float) -> int:
        """As many as begin in so many seconds."""
        until, number = perf_counter() + seconds, 0
        while perf_counter() < until:
            self._step()
            number += 1
        return number

    def _step(self) -> None:
        if self._position == CONTEXT_LENGTH:
            for slot in self._slots.tolist():
                self._runner.truncate(slot, 0)
            self._position = 0
        positions = np.full(len(self._tokens), self._position, np.int32)
        wants_logits = np.ones(len(self._tokens), np.bool_)
        self._runner.forward(ForwardBatch(self._tokens, positions, self._slots, wants_logits))
        self._position += 1

    def close(self) -> None:
        self._runner.close()


def create_runner(path: Path, num_slots: int, num_threads: int) -> LlamaRunner:
    cache = preferred_cache_types(Machine.detect())[0]
    settings = binding.ContextSettings(
        context_length=CONTEXT_LENGTH,
        num_slots=num_slots,
        num_threads=num_threads,
        max_batch_tokens=max(num_slots, LONE_CHUNK),
        cache_type_k=cache.keys,
        cache_type_v=cache.values,
    )
    return LlamaRunner.create(load_model(path, use_extra_buffers=True, on_progress=lambda _: None), settings)


def choose_threads(runner: LlamaRunner, here: Machine) -> None:
    """As a server does."""
    runner.self_test()
    threads = runner.choose_threads(here.thread_candidates)
    runner.use_threads(threads.at_first)
    runner.govern_threads(threads, MeasuredSteps.measure(runner))


@contextmanager
def hogs(number: int) -> Iterator[None]:
    """Processes that use all of a processor that they get."""
    with ExitStack() as stack:
        for _ in range(number):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(process.kill)
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a .gguf file (default: the demo model)")
    parser.add_argument("--spins", nargs="+", default=["0", "100", "1000", "10000", "100000", DEFAULT])
    parser.add_argument("--threads", nargs="+", default=["1", "2", CHOSEN], help='numbers, or "chosen"')
    parser.add_argument("--streams", nargs="+", type=int, default=[1, 8, 32])
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        path = options.model or find_demo_model()
        print(json.dumps(measure(path, options.child, options.streams, options.seconds)))
        return
    settings = [Setting(spins, threads) for threads in options.threads for spins in options.spins]
    rounds = [[measure_in_child(setting, options) for setting in settings] for _ in range(options.rounds)]
    print("| streams | threads | spins | tokens/s alone | beside one | beside two |")
    print("| --- | --- | --- | --- | --- | --- |")
    for streams in options.streams:
        for setting, rates in zip(settings, zip(*rounds, strict=True), strict=True):
            print(row(streams, setting, list(rates)))


def row(streams: int, setting: Setting, rounds: list[Rates]) -> str:
    alone, *beside = (median(rates[f"{streams}/{num_hogs}"] for rates in rounds) for num_hogs in HOGS)
    shares = " | ".join(f"{rate / alone:.2f}" for rate in beside)
    return f"| {streams} | {setting.threads} | {setting.spins} | {alone:.0f} | {shares} |"


if __name__ == "__main__":
    main()
