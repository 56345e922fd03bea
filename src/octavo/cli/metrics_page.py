"""What a running server's /metrics says."""

from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from math import inf

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample


class MetricsPage:
    """Numbers by their names; what is not there counts as 0. Raises ValueError for a text that is no such page."""

    def __init__(self, text: str) -> None:
        self._samples: defaultdict[str, list[Sample]] = defaultdict(list)
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self._samples[sample.name].append(sample)

    def __contains__(self, name: str) -> bool:
        return bool(self._samples.get(name))

    def total(self, name: str, **labels: str) -> float:
        """Over all samples with these labels, each given by the beginning of its value."""
        return sum(sample.value for sample in self._samples.get(name, ()) if _has(sample.labels, labels))

    def buckets(self, name: str) -> Mapping[float, float]:
        """Of a histogram, by upper bound: how many were at most so much."""
        counts: defaultdict[float, float] = defaultdict(float)
        for sample in self._samples.get(f"{name}_bucket", ()):
            counts[float(sample.labels["le"])] += sample.value
        return counts


class Change:
    """From one page of a server to a later one."""

    def __init__(self, before: MetricsPage, now: MetricsPage, seconds: float) -> None:
        self.now = now
        self._before = before
        self._seconds = seconds

    def of(self, name: str, **labels: str) -> float:
        """Of a counter; where the server has been started anew, what it has counted since."""
        before, now = self._before.total(name, **labels), self.now.total(name, **labels)
        return now - before if now >= before else now

    def per_second(self, name: str) -> float:
        return self.of(name) / self._seconds if self._seconds > 0 else 0.0

    def quantile(self, name: str, part: float) -> float | None:
        """Of what a histogram has seen meanwhile, as Prometheus estimates it; None where that is nothing."""
        before, now = self._before.buckets(name), self.now.buckets(name)
        if now.get(inf, 0.0) < before.get(inf, 0.0):  # the server has been started anew
            before = {}
        counts = [(bound, count - before.get(bound, 0.0)) for bound, count in sorted(now.items())]
        if not counts or counts[-1][1] <= 0:
            return None
        return _interpolated(counts, part * counts[-1][1])


def _has(given: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(given.get(name, "").startswith(value) for name, value in wanted.items())


def _interpolated(counts: list[tuple[float, float]], rank: float) -> float:
    """counts: by upper bound, the last one infinite."""
    for (low, below), (high, at_most) in pairwise([(0.0, 0.0), *counts]):
        if at_most >= rank:
            return low if high == inf else low + (high - low) * (rank - below) / max(at_most - below, 1e-9)
    return counts[-1][0]
