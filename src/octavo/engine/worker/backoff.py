"""How long to wait before an engine's process is replaced."""

FIRST_DELAY = 0.25
LONGEST_DELAY = 30.0
LONG_LIFE = 10
"""A process that was ready for so many times the delay before it has proved that it does not die at once: so an engine
that keeps dying spends most of its time waiting, and one that is killed now and then is back soon each time."""


class Backoff:
    """Doubles the delay, in seconds, with every death; a process that has lived long starts it over."""

    def __init__(self) -> None:
        self._delay = FIRST_DELAY / 2

    def next_delay(self, *, lived: float) -> float:
        """lived: seconds for which the dead process was ready."""
        is_over = lived >= LONG_LIFE * self._delay
        self._delay = FIRST_DELAY if is_over else min(2 * self._delay, LONGEST_DELAY)
        return self._delay
