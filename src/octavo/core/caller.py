"""Who asks."""

from dataclasses import dataclass, field
from enum import StrEnum


class Scope(StrEnum):
    """What a key is good for."""

    GENERATE = "generate"
    ADMIN = "admin"


MAX_LIMIT = 10**12
"""More than any key can use; what is larger is a slip, and would not fit where one is computed with."""


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """What a key may use; None is any amount. requests, tokens: in a minute. concurrent: requests at the same time."""

    requests: int | None = None
    tokens: int | None = None
    concurrent: int | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request, as its key tells.

    key_id: public and unique, never the key itself; empty where no key is needed.
    """

    key_id: str = ""
    scopes: frozenset[Scope] = field(default_factory=lambda: frozenset(Scope))
    limits: KeyLimits = KeyLimits()


ANYONE = Caller()
"""Who calls a server that has no keys."""
