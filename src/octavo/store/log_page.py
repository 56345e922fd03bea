"""A part of the prompt log."""

from collections.abc import Sequence
from dataclasses import dataclass

from octavo.core.log_entry import LogEntry


@dataclass(frozen=True, slots=True)
class LogPage:
    """has_more: there are older rows that fit the query."""

    entries: Sequence[LogEntry]
    has_more: bool
