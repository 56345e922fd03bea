"""Something that does not work for a while."""

import logging
from math import inf
from time import monotonic

_LOG_INTERVAL = 30.0
_MAX_REASON = 200

_log = logging.getLogger(__name__)


class Outage:
    """Says in the log that it is there, now and then, and when it is over: however often it comes, few lines."""

    def __init__(self, what: str, lasts: float = inf) -> None:
        """what: does not work, as a sentence without its full stop. lasts: seconds after which it is to be tried."""
        self.what = what
        self._lasts = lasts
        self._ends = -inf
        self._next_line = -inf
        self._num_new = 0
        self._is_said = False

    @property
    def is_on(self) -> bool:
        return monotonic() < self._ends

    def note(self, error: BaseException) -> None:
        """It has failed."""
        self._ends = monotonic() + self._lasts
        self._num_new += 1
        if monotonic() >= self._next_line:
            _log.warning("%s: %s (failures since the last such line: %d)", self.what, reason_of(error), self._num_new)
            self._next_line = monotonic() + _LOG_INTERVAL
            self._num_new = 0
            self._is_said = True

    def end(self) -> None:
        """It has worked."""
        self._ends = -inf
        if self._is_said:
            self._is_said = False
            _log.warning("this is over: %s", self.what)


def reason_of(error: BaseException) -> str:
    """A line without the statement and its values, which SQLAlchemy adds to what the driver says."""
    said = str(getattr(error, "orig", None) or error).splitlines()
    return said[0][:_MAX_REASON] if said else type(error).__name__
