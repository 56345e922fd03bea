"""What is only told of a request must not end it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_logger = logging.getLogger(__name__)


@contextmanager
def contained() -> Iterator[None]:
    """A block that tells somebody of a request: its faults are logged, and the request goes on."""
    try:
        yield
    except Exception:
        with suppress(Exception):  # the log itself may be what fails
            _logger.exception("a request could not be recorded")
