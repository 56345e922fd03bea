"""The grammar of what a document allows."""

from octavo.constraints.budget import check_time
from octavo.constraints.schema.arrays import array_alternatives
from octavo.constraints.schema.cases import CaseBook
from octavo.constraints.schema.facts import Case, Goal, Goals
from octavo.constraints.schema.numbers import number_symbols
from octavo.constraints.schema.objects import object_alternatives
from octavo.constraints.schema.paths import unsupported
from octavo.constraints.schema.possible import allowed_values
from octavo.constraints.schema.references import Document
from octavo.constraints.schema.rules import Alternative, Rules
from octavo.constraints.schema.strings import string_symbols
from octavo.constraints.schema.values import KINDS, spelled_value
from octavo.errors import UnsupportedGrammar

MAX_RULES = 20_000


class GrammarWriter:
    """A rule for each conjunction of goals that a value somewhere in an answer has, found from the root on."""

    def __init__(self, document: Document) -> None:
        self.book = CaseBook(document)
        self.rules = Rules()
        self._names: dict[tuple[Goals, frozenset[str]], str] = {}
        self._pending: list[tuple[Goals, frozenset[str]]] = []
        self._place: Goals = ()
        self._notes: list[UnsupportedGrammar] = []

    def text(self, kinds: frozenset[str]) -> str:
        """Of the document's values of these kinds, in Lark. Raises UnsupportedGrammar where there are none."""
        start = self._symbol((Goal(()),), kinds)
        while self._pending:
            check_time()
            goals, allowed = self._pending.pop()
            self._place = goals
            self.rules.define(self._names[goals, allowed], self._alternatives(goals, allowed))
            if len(self._names) > MAX_RULES:
                raise unsupported((), "is too large.")
        text = self.rules.text(start)
        if text is None:
            raise self._failure()
        return text

    def _failure(self) -> UnsupportedGrammar:
        if self._notes:
            return self._notes[0]
        path = self.book.void[0] if self.book.void else ()
        return unsupported(path, "allows no value that can be generated, so the whole schema allows none.")

    def symbol(self, goals: Goals, kind: str | None = None) -> str:
        return self._symbol(goals, frozenset({kind} if kind else KINDS))

    def terminal(self, expression: str) -> str:
        symbol = self.rules.terminal(expression)
        assert symbol is not None, "punctuation is never empty"
        return symbol

    def note(self, reason: str) -> None:
        self._notes.append(unsupported(self._place[0].path if self._place else (), reason))

    def _symbol(self, goals: Goals, kinds: frozenset[str]) -> str:
        key = self.book.simplified(goals), kinds
        if key not in self._names:
            self._names[key] = self.rules.fresh()
            self._pending.append(key)
        return self._names[key]

    def _alternatives(self, goals: Goals, kinds: frozenset[str]) -> list[Alternative]:
        cases = self.book.cases(goals)
        return [one for kind in KINDS if kind in kinds for case in cases for one in self._of_kind(kind, case)]

    def _of_kind(self, kind: str, case: Case) -> list[Alternative]:
        if kind not in case.kinds:
            return []
        facts = case.of_kind(kind)
        match kind:
            case "object":
                return object_alternatives(facts, self)
            case "array":
                return array_alternatives(facts, self)
            case "string":
                return [(symbol,) for symbol in string_symbols(facts, self.rules)]
            case "number":
                return [(symbol,) for symbol in number_symbols(facts, self.rules)]
        values = allowed_values(kind, facts)
        return [(self.rules.literal(*map(spelled_value, values)),)] if values else []
