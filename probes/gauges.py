"""Gauges of a /metrics page."""

import math


def num_running(page: str) -> float:
    """Requests in slots, of all models; NaN, which is neither few nor many, where the page does not say."""
    return _sum_of("octavo_requests_running{", page)


def num_waiting(page: str) -> float:
    """As for those that run."""
    return _sum_of("octavo_requests_waiting{", page)


def _sum_of(gauge: str, page: str) -> float:
    values = [float(line.rpartition(" ")[2]) for line in page.splitlines() if line.startswith(gauge)]
    return sum(values) if values else math.nan
