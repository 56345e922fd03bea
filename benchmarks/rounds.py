"""Contenders in turns: each alone on the machine, round after round, and the report of what they did."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError
from pathlib import Path

from benchmarks.contenders import OCTAVO, Contender, Room
from benchmarks.machine import background_load, describe_machine, describe_versions
from benchmarks.peers import PEERS
from benchmarks.processes import ServerFailed, run_until_stopped
from benchmarks.report import Comparison, Measurement, Report
from benchmarks.workloads import Workload

RESULTS = Path(__file__).parent / "results"
CONDITIONS = (
    "Each contender is started anew for each measurement, alone on the machine, and warmed up. End-of-generation "
    "tokens are ignored, connections are fresh, the load generator runs on the same machine."
)
FAILURES = (OSError, LookupError, ValueError, ServerFailed)
MAX_REASON_CHARACTERS = 600
START_SECONDS = 15.0
PREFILL_RATE, DECODE_RATE = 170.0, 75.0
"""Tokens per second of SmolLM2 on two cores with AVX2, for the estimate."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is compared with one workload. seed: of the first round's prompts is one more."""

    workload: Workload
    contenders: Sequence[Contender]
    stream_counts: Sequence[int]
    rounds: int
    seed: int = 0

    @property
    def pairs(self) -> list[tuple[int, Contender]]:
        """Each number of streams with each contender that can take so many."""
        return [
            (num_streams, contender)
            for num_streams in self.stream_counts
            for contender in self.contenders
            if contender.can_run(self.workload, num_streams)
        ]

    @property
    def estimated_seconds(self) -> float:
        """If all were as fast as the demo model on two cores, and nothing were reused."""
        works = [self.workload.scenario.work(num_streams) for num_streams, _ in self.pairs]
        return self.rounds * sum(
            START_SECONDS + work.prompt_tokens / PREFILL_RATE + work.output_tokens / DECODE_RATE for work in works
        )

    def begin(self) -> Comparison:
        room = Room.of(self.workload, self.stream_counts[0])
        commands = {contender.name: contender.shown_command(room) for contender in self.contenders}
        return Comparison(f"{self.workload.title}; {self.rounds} rounds", self.workload.figure, commands)


async def compare(plan: Plan, comparison: Comparison) -> None:
    """Run all rounds; each measurement is added to the comparison as it is made.

    An opponent that fails is not asked again. Raises what made Octavo fail, one of FAILURES.
    """
    failed: set[str] = set()
    for round_number in range(1, plan.rounds + 1):
        for num_streams, contender in _in_turn(plan.pairs, round_number):
            if contender.name in failed:
                continue
            try:
                comparison.measurements.append(await measure(plan, contender, round_number, num_streams))
            except FAILURES as error:
                if contender.name == OCTAVO:
                    raise
                failed.add(contender.name)
                reason = " ".join(str(error).split())[:MAX_REASON_CHARACTERS]
                comparison.failures.append(f"round {round_number}, {num_streams} streams, {contender.name}: {reason}")


def _in_turn(pairs: list[tuple[int, Contender]], round_number: int) -> list[tuple[int, Contender]]:
    """Whoever runs first in one round runs later in the next: a machine that warms up or slows down is fair to all."""
    turned = []
    for num_streams in dict.fromkeys(number for number, _ in pairs):
        those = [pair for pair in pairs if pair[0] == num_streams]
        shift = (round_number - 1) % len(those)
        turned += those[shift:] + those[:shift]
    return turned


async def measure(plan: Plan, contender: Contender, round_number: int, num_streams: int) -> Measurement:
    """Each round has prompts of its own, the same for all contenders."""
    background = await background_load()
    log_path = PEERS / "logs" / f"{round_number}-{num_streams}-{contender.name.replace(' ', '-')}.log"
    phases = await contender.measure(plan.workload, num_streams, plan.seed + round_number, log_path)
    measurement = Measurement(round_number, contender.name, num_streams, background, phases)
    figure = plan.workload.figure
    value = figure.value(measurement.load)
    shown = "none" if value is None else f"{value:.1f}"
    print(f"round {round_number}, {num_streams} streams, {contender.name}: {figure.name} {shown}", flush=True)
    return measurement


def begin_report(peer_versions: dict[str, str]) -> Report:
    """Raises SystemExit where Octavo is not installed."""
    try:
        versions = {**describe_versions(), **peer_versions}
    except PackageNotFoundError as error:
        raise SystemExit(f"{error} is not installed") from error
    started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ")
    return Report(started, CONDITIONS, describe_machine(), versions)


def run_and_report(plans: Sequence[Plan], report: Report, folder: Path) -> None:
    """Print an estimate, run all plans, and write the report after each, and even if Octavo failed."""
    minutes = sum(plan.estimated_seconds for plan in plans) / 60
    print(f"About {minutes:.0f} minutes, if this machine is like two cores with AVX2 and the model like SmolLM2.")

    async def run_all() -> None:
        for plan in plans:
            report.comparisons.append(comparison := plan.begin())
            print(f"\n{plan.workload.title}", flush=True)
            await compare(plan, comparison)
            write_report(report, folder)

    failure = None
    try:
        run_until_stopped(run_all())
    except FAILURES as error:
        failure = f"Octavo failed: {error}"
    finally:
        if any(comparison.measurements for comparison in report.comparisons):
            path = write_report(report, folder)
            print(f"\n{path.read_text()}\nWritten to {path}; the same as JSON is beside it.")
    sys.exit(failure)


def write_report(report: Report, folder: Path) -> Path:
    """Write the Markdown and the JSON; return the Markdown's path."""
    folder.mkdir(parents=True, exist_ok=True)
    markdown = folder / f"{report.started.replace(':', '')}.md"
    markdown.write_text(report.to_markdown())
    markdown.with_suffix(".json").write_bytes(report.to_json())
    return markdown
