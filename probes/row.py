"""What came of a probe, as a row of the table and as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from probes.counts import Counts, counts_to
from probes.measure import Ratio
from probes.probe import MIB

HEADS = ("group", "probe", "right", "5xx", "shape", "exits", "first token", "gap", "stall", "memory", "")


@dataclass(slots=True)
class Row:
    """breaches: the pass lines that it broke. why_not: a reason for which it did not run.

    first_token, gap: the healthy client's p99 beside the control's. stall: its longest wait, in seconds.
    memory: bytes above rest at the worst moment.
    """

    group: str
    probe: str
    counts: Counts = field(default_factory=Counts)
    breaches: list[str] = field(default_factory=list)
    why_not: str = ""
    first_token: Ratio | None = None
    gap: Ratio | None = None
    stall: float | None = None
    memory: int | None = None
    seconds: float = 0.0

    @property
    def is_passed(self) -> bool:
        return not self.breaches

    @property
    def cells(self) -> tuple[str, ...]:
        counts = self.counts
        if self.why_not:
            return (self.group, self.probe, *("–",) * 8, f"not run: {self.why_not}")
        return (
            self.group,
            self.probe,
            f"{counts.num_right} of {counts.num_sent}",
            str(counts.num_unplanned),
            str(counts.num_misshapen),
            str(counts.num_exits),
            "–" if self.first_token is None else str(self.first_token),
            "–" if self.gap is None else str(self.gap),
            "–" if self.stall is None else f"{1000 * self.stall:.0f} ms",
            "–" if self.memory is None else f"{self.memory / MIB:.1f} MiB",
            "; ".join((*self.breaches, *figures(counts))),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "group": self.group,
            "probe": self.probe,
            "passed": self.is_passed,
            "why_not": self.why_not,
            "breaches": self.breaches,
            "counts": counts_to(self.counts),
            "first_token": _ratio(self.first_token),
            "gap": _ratio(self.gap),
            "stall_seconds": self.stall,
            "memory_bytes": self.memory,
            "seconds": self.seconds,
        }


def figures(counts: Counts) -> list[str]:
    return [f"{name}: {value:.3g}" if value % 1 else f"{name}: {value:.0f}" for name, value in counts.figures.items()]


def line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def head() -> str:
    return f"{line(HEADS)}\n{line(('---',) * len(HEADS))}"


def _ratio(ratio: Ratio | None) -> dict[str, Any] | None:
    if ratio is None:
        return None
    return {"median": ratio.median, "worst": ratio.worst, "is_resolvable": ratio.is_resolvable}
