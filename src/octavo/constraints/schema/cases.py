"""Schemas, taken apart into cases: a value for which all facts of one case hold is valid."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from octavo.constraints.schema import applicators, assertions, negations
from octavo.constraints.schema.applicators import ALL, Cases
from octavo.constraints.schema.constants import equal_cases, unequal_cases
from octavo.constraints.schema.facts import ANYTHING, NOTHING, Case, Goal, Goals, Relation, together
from octavo.constraints.schema.paths import Path, unsupported
from octavo.constraints.schema.possible import possible_kinds
from octavo.constraints.schema.references import Document
from octavo.constraints.schema.unevaluated import with_unevaluated, without_annotations

MAX_CASES = 512
"""Of one value."""
MAX_WORK = 40_000
"""Cases that are looked at for one schema."""
MAX_CHAIN = 48
"""Schemas that lead from one to the next for the same value."""
MAX_LOOK = 16
"""Levels of required members that are looked into for contradictions."""

_SAYING = assertions.KEYWORDS | applicators.RULES.keys() | {"unevaluatedProperties", "unevaluatedItems"}


class CaseBook:
    """The cases of every goal, found when they are asked for.

    Not all that a schema allows need be in its cases, but all that is in them is allowed.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._known: dict[Goals, Cases] = {}
        self._single: dict[Goal, Cases] = {}
        self._asked: set[Goals] = set()
        self._work = 0
        self.void: list[Path] = []
        """Places of schemas that were found to allow nothing, inner ones first."""

    def cases(self, goals: Goals) -> Cases:
        """Of what fulfils all goals. Raises UnsupportedGrammar where there are too many, or where one is not sound."""
        if goals not in self._known:
            path = goals[0].path if goals else ()
            self._known[goals] = self._product([self._of(goal, ()) for goal in goals], path)
        return self._known[goals]

    def simplified(self, goals: Goals) -> Goals:
        """The same without detours, so that the same is asked for by the same goals."""
        return together(map(self._simplified, goals))

    def is_impossible(self, goals: Goals) -> bool:
        """Whether nothing can fulfil them. False where that is not seen."""
        goals = self.simplified(goals)
        if goals in self._asked or len(self._asked) >= MAX_LOOK:
            return False
        self._asked.add(goals)
        try:
            return not self.cases(goals)
        finally:
            self._asked.discard(goals)

    def _simplified(self, goal: Goal) -> Goals:
        seen: set[Goal] = set()
        while goal.relation in (Relation.VALID, Relation.INVALID) and goal not in seen:
            seen.add(goal)
            schema = self._document.at(goal.path)
            said = [] if isinstance(schema, bool) else [keyword for keyword in schema if keyword in _SAYING]
            if said == ["$ref"]:
                goal = Goal(self._document.target(goal.path, "$ref"), goal.relation)
            elif not said:
                return ANYTHING if (schema is not False) is (goal.relation is Relation.VALID) else NOTHING
        return (goal,)

    def _of(self, goal: Goal, chain: tuple[Goal, ...]) -> Cases:
        """chain: the goals of the same value that led here."""
        if goal in chain:
            raise unsupported(goal.path, "refers to itself for the same value.")
        if len(chain) > MAX_CHAIN:
            raise unsupported(goal.path, f"more than {MAX_CHAIN} schemas lead here for the same value.")
        if goal not in self._single:
            self._single[goal] = self._found(goal, chain)
        return self._single[goal]

    def _found(self, goal: Goal, chain: tuple[Goal, ...]) -> Cases:
        if goal.relation is Relation.NEVER:
            return []
        node = self._document.at(goal.path)
        match goal.relation:
            case Relation.EQUAL:
                return equal_cases(goal.path, node)
            case Relation.UNEQUAL:
                return unequal_cases(goal.path, node)
        if isinstance(node, bool):
            self.void += [] if node else [goal.path]
            return ALL if node is (goal.relation is Relation.VALID) else []
        place = _Place(self, goal.path, node, (*chain, goal))
        if goal.relation is Relation.INVALID:
            return self._invalid(place)
        found = self._valid(place)
        self.void += [] if found else [goal.path]
        return found

    def _valid(self, place: "_Place") -> Cases:
        parts = [[assertions.facts_case(place.path, place.schema)]]
        parts += [rule(place, Relation.VALID) for key, rule in applicators.RULES.items() if key in place.schema]
        found = (with_unevaluated(place.path, place.schema, one) for one in place.product(parts))
        return self._narrowed(found, place.path)

    def _invalid(self, place: "_Place") -> Cases:
        found = negations.negated_cases(place.path, place.schema)
        for keyword, rule in applicators.RULES.items():
            if keyword in place.schema:
                found += rule(place, Relation.INVALID)
        return self._narrowed(map(without_annotations, found), place.path)

    def _product(self, parts: Sequence[Cases], path: Path) -> Cases:
        def both(left: Cases, right: Cases) -> Cases:
            return self._narrowed((one & other for one in left for other in right), path)

        return reduce(both, sorted(parts, key=len)) if parts else ALL

    def _narrowed(self, cases: Iterable[Case], path: Path) -> Cases:
        """Without the impossible ones, and each only once."""
        found: dict[Case, None] = {}
        for one in cases:
            self._work += 1
            if self._work > MAX_WORK or len(found) > MAX_CASES:
                raise unsupported(path, "has too many alternatives when its keywords are combined.")
            kinds = possible_kinds(one, self.is_impossible)
            if kinds:
                found[Case(kinds, tuple(fact for fact in one.facts if fact.kind in kinds))] = None
        return list(found)


@dataclass(frozen=True, slots=True)
class _Place:
    book: CaseBook
    path: Path
    schema: Mapping[str, Any]
    chain: tuple[Goal, ...]

    def child(self, *steps: str | int, relation: Relation) -> Cases:
        return self.book._of(Goal((*self.path, *steps), relation), self.chain)

    def target(self, keyword: str, relation: Relation) -> Cases:
        return self.book._of(Goal(self.book._document.target(self.path, keyword), relation), self.chain)

    def product(self, parts: Sequence[Cases]) -> Cases:
        return self.book._product(parts, self.path)
