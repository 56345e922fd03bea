"""How long the parts of a start take."""

from time import perf_counter


class Stopwatch:
    """Runs from its making; `lap` ends a part. As text: `0.35 s (weights 0.25, self-test 0.10)`."""

    def __init__(self) -> None:
        self._started = self._last = perf_counter()
        self._laps: list[tuple[str, float]] = []

    def lap(self, name: str) -> None:
        now = perf_counter()
        self._laps.append((name, now - self._last))
        self._last = now

    def __str__(self) -> str:
        laps = ", ".join(f"{name} {seconds:.2f}" for name, seconds in self._laps)
        return f"{self._last - self._started:.2f} s ({laps})"
