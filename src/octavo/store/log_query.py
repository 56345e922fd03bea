"""Which rows of the prompt log are asked for."""

import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogQuery:
    """The newest rows of those that fit, `limit` at most.

    before: only rows older than the one with this id. since, until: bounds of `created` in Unix seconds, the former
    included, the latter not. Empty and None stand for any.
    """

    limit: int = sys.maxsize
    before: str = ""
    key_id: str = ""
    user: str = ""
    model: str = ""
    since: float | None = None
    until: float | None = None


EVERYTHING = LogQuery()
