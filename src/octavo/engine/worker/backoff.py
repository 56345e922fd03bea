"""How long to wait before an engine's process is replaced."""

FIRST_DELAY = 0.25
LONGEST_DELAY = 30.0
LONG_LIFE = 30.0
"""Seconds after which a process that was ready has proved that it does not die at once."""


class Backoff:
    """Doubles the delay, in seconds, with every death; a process that has lived long starts it over."""

    def __init__(self) -> None:
        self._delay = FIRST_DELAY

    def next_delay(self, *, lived: float) -> float:
        """lived: seconds for which the dead process was ready."""
        delay = FIRST_DELAY if lived >= LONG_LIFE else self._delay
        self._delay = min(2 * delay, LONGEST_DELAY)
        return delay
