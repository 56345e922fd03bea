"""What is told of the refusals of the server itself: the application, which tells of requests, sees none of them."""

import logging
from collections.abc import Callable
from time import monotonic
from typing import Any

from octavo.api.errors import kind_of
from octavo.errors import OctavoError

MAX_LINES = 10
"""A second; all are counted."""

_logger = logging.getLogger(__name__)


class Refusals:
    """count: adds one to the refusals with a status."""

    def __init__(self, count: Callable[[int], None]) -> None:
        self._count = count
        self._second = 0
        self._num_lines = 0

    def note(self, error: OctavoError, client: Any) -> None:
        """client: the address, as its transport or scope tells it."""
        status = kind_of(error).status
        self._count(status)
        second = int(monotonic())
        if second != self._second:
            self._second, self._num_lines = second, 0
        self._num_lines += 1
        if self._num_lines <= MAX_LINES:
            host = client[0] if client else "unknown"
            _logger.info("a request from %s is refused with %d: %s", host, status, error.message)
