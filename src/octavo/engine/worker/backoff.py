"""How long to wait before an engine's process is replaced."""

FIRST_DELAY = 0.25
LONGEST_DELAY = 30.0


class Backoff:
    """Doubles the delay, in seconds, with every death; a process that finished a request starts it over (`reset`)."""

    def __init__(self) -> None:
        self._delay = FIRST_DELAY

    def next_delay(self) -> float:
        delay = self._delay
        self._delay = min(2 * delay, LONGEST_DELAY)
        return delay

    def reset(self) -> None:
        self._delay = FIRST_DELAY
