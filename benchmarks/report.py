"""A comparison's measurements as tables for people and as JSON for programs."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Self

import msgspec

from benchmarks.load import LoadResult
from benchmarks.machine import QUIET_PERCENT

OCTAVO = "octavo"


@dataclass(frozen=True, slots=True)
class Measurement:
    """One server under one load in one round."""

    round: int
    server: str
    num_streams: int
    background_percent: float
    load: LoadResult


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
    """All that was measured, and on what."""

    started: str
    machine: dict[str, str]
    versions: dict[str, str]
    commands: dict[str, str]
    workload: str
    measurements: list[Measurement] = field(default_factory=list)

    def of(self, server: str, num_streams: int) -> list[Measurement]:
        """The measurements of one server under one load, by round."""
        return [m for m in self.measurements if (m.server, m.num_streams) == (server, num_streams)]

    @property
    def servers(self) -> list[str]:
        return list(self.commands)

    @property
    def stream_counts(self) -> list[int]:
        return sorted({m.num_streams for m in self.measurements})

    def ratio(self, peer: str, num_streams: int) -> Spread | None:
        """Octavo's output tokens/s by the peer's of the same round."""
        peers = {m.round: m.load.output_tokens_per_second for m in self.of(peer, num_streams)}
        pairs = [(m.load.output_tokens_per_second, peers.get(m.round)) for m in self.of(OCTAVO, num_streams)]
        return Spread.of([ours / theirs for ours, theirs in pairs if theirs])

    def to_json(self) -> bytes:
        """Everything, with the ratios worked out."""
        peers = [server for server in self.servers if server != OCTAVO]
        ratios = {peer: {str(n): self.ratio(peer, n) for n in self.stream_counts} for peer in peers}
        content = {**msgspec.to_builtins(self), "octavo_by_peer": ratios}
        content["measurements"] = [{**msgspec.to_builtins(m), "load": m.load.to_dict()} for m in self.measurements]
        return msgspec.json.format(msgspec.json.encode(content)) + b"\n"


def to_markdown(comparison: Comparison) -> str:
    """The report: what ran, on what, the ratios, the figures, and what to doubt."""
    sections = [
        f"# Octavo and its peers, {comparison.started}",
        comparison.workload,
        "Only the ratios mean something: they are of servers that ran minutes apart on one machine.",
        _facts("Machine", comparison.machine),
        _facts("Versions", comparison.versions),
        _facts("Commands, for one stream", {name: f"`{command}`" for name, command in comparison.commands.items()}),
        "## Output tokens/s, Octavo by peer: median of the rounds (lowest – highest)\n\n" + _ratio_table(comparison),
        "## Figures: medians of the rounds (output tokens/s: lowest – highest)\n\n" + _figure_table(comparison),
    ]
    if doubts := find_doubts(comparison):
        sections.append("## Doubts\n\n" + "\n".join(f"- {doubt}" for doubt in doubts))
    return "\n\n".join(sections) + "\n"


def find_doubts(comparison: Comparison) -> list[str]:
    """What makes a comparison unfair: failed requests, other work on the machine, servers that did not do the same."""
    doubts = []
    for m in comparison.measurements:
        where = f"round {m.round}, {m.num_streams} streams, {m.server}"
        if m.background_percent >= QUIET_PERCENT:
            doubts.append(f"{where}: others used {m.background_percent:.0f} % of the processors before the start.")
        doubts += [f"{where}: {count} × {error}" for error, count in m.load.errors.items()]
    for num_streams in comparison.stream_counts:
        at_load = [m.load for m in comparison.measurements if m.num_streams == num_streams]
        if len({(load.prompt_tokens, load.completion_tokens) for load in at_load}) > 1:
            doubts.append(f"{num_streams} streams: the servers did not all read and write the same number of tokens.")
        if not all(load.are_token_counts_exact for load in at_load):
            doubts.append(f"{num_streams} streams: a server sent no usage; its tokens were counted in chunks.")
    return doubts


def _facts(title: str, facts: dict[str, str]) -> str:
    return f"## {title}\n\n" + "\n".join(f"- {name}: {value}" for name, value in facts.items())


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _ratio_table(comparison: Comparison) -> str:
    header = ["peer", *(f"{n} streams" for n in comparison.stream_counts)]
    peers = [server for server in comparison.servers if server != OCTAVO]
    rows = [[peer, *(_spread(comparison.ratio(peer, n), 2) for n in comparison.stream_counts)] for peer in peers]
    return _table(header, rows)


def _figure_table(comparison: Comparison) -> str:
    header = ["streams", "server", "output tokens/s", "first token, median / p99 ms", "per token, median / p99 ms"]
    header += ["largest gap ms", "load generator's CPU s", "failed"]
    rows = [
        [str(n), server, *_figures(measured)]
        for n in comparison.stream_counts
        for server in comparison.servers
        if (measured := [m.load for m in comparison.of(server, n)])
    ]
    return _table(header, rows)


def _figures(loads: list[LoadResult]) -> list[str]:
    first = [load.time_to_first_token_ms for load in loads if load.time_to_first_token_ms]
    per_token = [load.time_per_output_token_ms for load in loads if load.time_per_output_token_ms]
    return [
        _spread(Spread.of([load.output_tokens_per_second for load in loads]), 1),
        f"{_median([p.median for p in first])} / {_median([p.p99 for p in first])}",
        f"{_median([p.median for p in per_token])} / {_median([p.p99 for p in per_token])}",
        _median([load.largest_gap_ms for load in loads]),
        f"{statistics.median(load.load_cpu_seconds for load in loads):.2f}",
        str(sum(sum(load.errors.values()) for load in loads)),
    ]


def _spread(spread: Spread | None, digits: int) -> str:
    if spread is None:
        return "–"
    return f"{spread.median:.{digits}f} ({spread.low:.{digits}f} – {spread.high:.{digits}f})"


def _median(values: list[float]) -> str:
    return f"{statistics.median(values):.1f}" if values else "–"
