"""How long rows are kept."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Retention:
    """days: after which a row is deleted. max_bytes: of all rows together, beyond which the oldest are deleted.

    None: there is no bound.
    """

    days: float | None = None
    max_bytes: int | None = None
