"""Figures from samples."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

MAX_SPREAD = 1.5
"""Of the control's own runs; beyond it, they cannot tell an attack's effect from the machine's mood."""


def percentile(values: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile; 0 of nothing."""
    ordered = sorted(values)
    rank = math.ceil(len(ordered) * percent / 100)
    return ordered[max(rank, 1) - 1] if ordered else 0.0


def spread(values: Sequence[float]) -> float:
    """Largest by smallest; infinite where that says nothing."""
    return max(values) / min(values) if values and min(values) > 0 else math.inf


@dataclass(frozen=True, slots=True)
class Ratio:
    """Of a figure during an attack to the same during its control, run by run.

    median, worst: of all runs. is_resolvable: the control alone was steady enough for the ratio to mean something.
    """

    median: float
    worst: float
    is_resolvable: bool

    @classmethod
    def of(cls, attacks: Sequence[float], controls: Sequence[float]) -> "Ratio":
        """Of as many controls as attacks."""
        pairs = zip(attacks, controls, strict=True)
        ratios = [attack / control if control else math.inf for attack, control in pairs]
        is_resolvable = len(controls) > 1 and spread(controls) <= MAX_SPREAD
        return cls(statistics.median(ratios), max(ratios), is_resolvable)

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.worst:.2f})" if self.is_resolvable else "not resolvable"


def welch_t(first: Sequence[float], second: Sequence[float]) -> float:
    """Welch's t of two samples' means; 0 where neither varies and both are the same."""
    error = math.sqrt(
        statistics.variance(first) / len(first) + statistics.variance(second) / len(second),
    )
    difference = statistics.fmean(first) - statistics.fmean(second)
    return difference / error if error else math.copysign(math.inf, difference) if difference else 0.0


def slope(values: Sequence[float]) -> float:
    """Of the line of least squares through values at equal steps, in values a step."""
    mean_x, mean_y = (len(values) - 1) / 2, statistics.fmean(values)
    above = sum((x - mean_x) * (y - mean_y) for x, y in enumerate(values))
    below = sum((x - mean_x) ** 2 for x in range(len(values)))
    return above / below if below else 0.0
