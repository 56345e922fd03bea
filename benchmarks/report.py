"""Comparisons as tables for people and as JSON for programs."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Self

import msgspec

from benchmarks.contenders import OCTAVO
from benchmarks.load_result import LoadResult
from benchmarks.machine import QUIET_PERCENT
from benchmarks.scenarios import Phase
from benchmarks.workloads import Figure


@dataclass(frozen=True, slots=True)
class Measurement:
    """One contender under one load in one round; the last phase is the one that is compared."""

    round: int
    contender: str
    num_streams: int
    background_percent: float
    phases: list[Phase]

    @property
    def load(self) -> LoadResult:
        return self.phases[-1].load


@dataclass(frozen=True, slots=True)
class Spread:
    """The middle of several values, and their ends."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Self | None:
        """None of nothing."""
        return cls(statistics.median(values), min(values), max(values)) if values else None


@dataclass(slots=True)
class Comparison:
    """All that was measured with one workload. commands: by contender. failures: what ended early, and why."""

    workload: str
    figure: Figure
    commands: dict[str, str]
    measurements: list[Measurement] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def of(self, contender: str, num_streams: int) -> list[Measurement]:
        """The measurements of one contender under one load, by round."""
        return [m for m in self.measurements if (m.contender, m.num_streams) == (contender, num_streams)]

    @property
    def opponents(self) -> list[str]:
        return [name for name in self.commands if name != OCTAVO]

    @property
    def stream_counts(self) -> list[int]:
        return sorted({m.num_streams for m in self.measurements})

    def ratio(self, opponent: str, num_streams: int) -> Spread | None:
        """Octavo's figure by the opponent's of the same round."""
        theirs = {m.round: self.figure.value(m.load) for m in self.of(opponent, num_streams)}
        pairs = [(self.figure.value(m.load), theirs.get(m.round)) for m in self.of(OCTAVO, num_streams)]
        return Spread.of([our / their for our, their in pairs if our and their])

    def to_dict(self) -> dict[str, object]:
        """Everything, with the ratios worked out, ready for JSON."""
        return {
            "workload": self.workload,
            "figure": self.figure.name,
            "commands": self.commands,
            "octavo_by_opponent": {
                opponent: {str(n): self.ratio(opponent, n) for n in self.stream_counts} for opponent in self.opponents
            },
            "failures": self.failures,
            "measurements": [_measurement_to_dict(m) for m in self.measurements],
        }


@dataclass(slots=True)
class Report:
    """One run of the comparisons, and on what. absent: peers that are not here, and why."""

    started: str
    conditions: str
    machine: dict[str, str]
    versions: dict[str, str]
    absent: dict[str, str] = field(default_factory=dict)
    comparisons: list[Comparison] = field(default_factory=list)

    def to_json(self) -> bytes:
        facts = {name: getattr(self, name) for name in ("started", "conditions", "machine", "versions", "absent")}
        content = {**facts, "comparisons": [comparison.to_dict() for comparison in self.comparisons]}
        return msgspec.json.format(msgspec.json.encode(content)) + b"\n"

    def to_markdown(self) -> str:
        """What ran, on what, and for each workload the ratios, the figures and what to doubt."""
        sections = [
            f"# Octavo and its peers, {self.started}",
            self.conditions,
            "Only the ratios mean something: they are of contenders that ran minutes apart on one machine.",
            _facts("Machine", self.machine),
            _facts("Versions", self.versions),
        ]
        if self.absent:
            sections.append(
                _facts("Not measured", {name: f"does not run here: {why}" for name, why in self.absent.items()})
            )
        sections += [section for comparison in self.comparisons for section in _sections(comparison)]
        return "\n\n".join(sections) + "\n"


def find_doubts(comparison: Comparison) -> list[str]:
    """What makes a comparison unfair: failed requests, other work on the machine, unequal work."""
    doubts = list(comparison.failures)
    for m in comparison.measurements:
        where = f"round {m.round}, {m.num_streams} streams, {m.contender}"
        if m.background_percent >= QUIET_PERCENT:
            doubts.append(f"{where}: others used {m.background_percent:.0f} % of the processors before the start.")
        for phase in m.phases:
            part = f"{where}, {phase.name}" if phase.name else where
            doubts += [f"{part}: {count} × {error}" for error, count in phase.load.errors.items()]
    for num_streams in comparison.stream_counts:
        at_load = [m for m in comparison.measurements if m.num_streams == num_streams]
        if len({m.load.completion_tokens for m in at_load}) > 1:
            doubts.append(f"{num_streams} streams: not all generated the same number of tokens.")
        for name in sorted({m.contender for m in at_load if not m.load.are_token_counts_exact}):
            doubts.append(f"{num_streams} streams: {name} sent no usage; its tokens were counted in chunks.")
    return doubts


def _measurement_to_dict(measurement: Measurement) -> dict[str, object]:
    phases = [{"name": phase.name, **phase.load.to_dict()} for phase in measurement.phases]
    return {**msgspec.to_builtins(measurement), "phases": phases}


def _sections(comparison: Comparison) -> list[str]:
    better = "higher" if comparison.figure.is_higher_better else "lower"
    title = f"{comparison.figure.name}, Octavo by the other ({better} is better)"
    sections = [
        f"## {comparison.workload}",
        _list({name: f"`{command}`" for name, command in comparison.commands.items()}),
        f"### {title}: median of the rounds (lowest – highest)",
        _ratio_table(comparison),
        "### Figures: medians of the rounds (compared figure: lowest – highest)",
        _figure_table(comparison),
    ]
    if doubts := find_doubts(comparison):
        sections += ["### Doubts", "\n".join(f"- {doubt}" for doubt in doubts)]
    return sections


def _facts(title: str, facts: dict[str, str]) -> str:
    return f"## {title}\n\n{_list(facts)}"


def _list(facts: dict[str, str]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in facts.items())


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _ratio_table(comparison: Comparison) -> str:
    header = ["Octavo by", *(f"{n} streams" for n in comparison.stream_counts)]
    rows = [
        [opponent, *(_spread(comparison.ratio(opponent, n), 2) for n in comparison.stream_counts)]
        for opponent in comparison.opponents
    ]
    return _table(header, rows)


def _figure_table(comparison: Comparison) -> str:
    header = ["streams", "contender", f"compared: {comparison.figure.name}", "output tokens/s"]
    header += ["first token, median / p99 ms", "per token, median / p99 ms", "largest gap ms"]
    header += ["load generator's CPU, s (share)", "failed"]
    rows = [
        [str(n), f"{contender}, {phase}" if phase else contender, *_figures(comparison.figure, loads)]
        for n in comparison.stream_counts
        for contender in comparison.commands
        for phase, loads in _by_phase(comparison.of(contender, n)).items()
    ]
    return _table(header, rows)


def _by_phase(measurements: list[Measurement]) -> dict[str, list[LoadResult]]:
    loads: dict[str, list[LoadResult]] = {}
    for measurement in measurements:
        for phase in measurement.phases:
            loads.setdefault(phase.name, []).append(phase.load)
    return loads


def _figures(figure: Figure, loads: list[LoadResult]) -> list[str]:
    first = [load.time_to_first_token_ms for load in loads if load.time_to_first_token_ms]
    per_token = [load.time_per_output_token_ms for load in loads if load.time_per_output_token_ms]
    cpu, share = (
        statistics.median(values)
        for values in ([load.load_cpu_seconds for load in loads], [load.load_cpu_percent for load in loads])
    )
    return [
        _spread(Spread.of([value for load in loads if (value := figure.value(load)) is not None]), 1),
        _median([load.output_tokens_per_second for load in loads]),
        f"{_median([p.median for p in first])} / {_median([p.p99 for p in first])}",
        f"{_median([p.median for p in per_token])} / {_median([p.p99 for p in per_token])}",
        _median([load.largest_gap_ms for load in loads if load.largest_gap_ms]),
        f"{cpu:.2f} ({share:.1f} %)" if first else "–",
        str(sum(sum(load.errors.values()) for load in loads)),
    ]


def _spread(spread: Spread | None, digits: int) -> str:
    if spread is None:
        return "–"
    return f"{spread.median:.{digits}f} ({spread.low:.{digits}f} – {spread.high:.{digits}f})"


def _median(values: list[float]) -> str:
    return f"{statistics.median(values):.1f}" if values else "–"
