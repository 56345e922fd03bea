"""What the makers of alternatives share."""

from typing import Protocol

from octavo.constraints.schema.cases import CaseBook
from octavo.constraints.schema.facts import Goals
from octavo.constraints.schema.rules import Rules


class Scope(Protocol):
    @property
    def book(self) -> CaseBook: ...

    @property
    def rules(self) -> Rules: ...

    def symbol(self, goals: Goals, kind: str | None = None) -> str:
        """The rule for values, of a kind or any, that fulfil all goals."""

    def terminal(self, expression: str) -> str:
        """For an expression that matches something."""

    def note(self, reason: str) -> None:
        """Why something that is allowed is not generated; told where nothing is."""
