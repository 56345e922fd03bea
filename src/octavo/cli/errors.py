"""How a command fails: one message on stderr and an exit code, never a traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from octavo.errors import ConfigError, OctavoError

FAILED_EXIT = 1
USAGE_EXIT = 2


@contextmanager
def reported_errors() -> Iterator[None]:
    """Turn the errors that have a message for people into that message and an exit code."""
    try:
        yield
    except OctavoError as error:
        print(f"octavo: {error.message}", file=sys.stderr)
        raise typer.Exit(USAGE_EXIT if isinstance(error, ConfigError) else FAILED_EXIT) from error
