"""The parts of a start."""

import pytest

from octavo.engine import stopwatch
from octavo.engine.stopwatch import Stopwatch


def test_each_part_takes_from_the_end_of_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([10.0, 10.25, 12.0])
    monkeypatch.setattr(stopwatch, "perf_counter", lambda: next(times))
    watch = Stopwatch()
    watch.lap("weights")
    watch.lap("self-test")

    assert str(watch) == "2.00 s (weights 0.25, self-test 1.75)"
