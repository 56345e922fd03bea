"""Objects that facts allow, as alternatives of a rule.

Members come in the order in which the schema names them, before those that it does not name, if it speaks of such.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby, product

from octavo.constraints.schema.facts import (
    NOTHING,
    Fact,
    Goals,
    Members,
    Names,
    Required,
    of_type,
    size_of,
    together,
)
from octavo.constraints.schema.patterns import Pattern
from octavo.constraints.schema.possible import allows
from octavo.constraints.schema.punctuation import CLOSE_OBJECT, COLON, COMMA, OPEN_OBJECT
from octavo.constraints.schema.rules import Alternative, Repeat
from octavo.constraints.schema.scope import Scope
from octavo.constraints.schema.strings import string_symbols
from octavo.constraints.schema.terminals import matching, spelled_literals
from octavo.constraints.schema.values import spelled_value

MAX_PATTERNS = 4
"""Of which each combination is a rule of its own."""
MAX_STATES = 16_384
MAX_OPTIONAL = 2000
"""Next to each other, so that each of them may come next."""
_PLAIN_NAME = r'/"[^"\\\x00-\x1f\x7f]*"/'


def object_alternatives(facts: Sequence[Fact], scope: Scope) -> list[Alternative]:
    found = _Objects(facts, scope)
    if not found.required <= found.members.keys():
        return []
    states = (len(found.members) + 1) * (found.last + 1)
    if states > MAX_STATES or found.longest_choice > MAX_OPTIONAL:
        scope.note("so many properties are not supported.")
        return []
    return [(scope.terminal(OPEN_OBJECT), found.body(), scope.terminal(CLOSE_OBJECT))]


class _Objects:
    def __init__(self, facts: Sequence[Fact], scope: Scope) -> None:
        self._facts = facts
        self._scope = scope
        self._groups = of_type(facts, Members)
        self._least, self._most = size_of(facts)
        self.required = {fact.name for fact in of_type(facts, Required)}
        self.last = max(1, self._least if self._most is None else self._most)
        if self._most is not None:
            self.last = min(self.last, max(1, self._least, len(self._names()) + 1))
        self.members = {name: goals for name in self._names() if (goals := self._goals(name)) != NOTHING}

    def body(self) -> str:
        """Automaton of which a state is the next member to be named and how many there are already."""
        names = list(self.members)
        following = [self._end(count) for count in range(self.last + 1)]
        for name in reversed(names):
            following = [self._state(name, count, following) for count in range(self.last + 1)]
        return following[0]

    @property
    def longest_choice(self) -> int:
        """How many members may be left out one after another."""
        runs = groupby(self.members, self.required.__contains__)
        return max((len(list(run)) for is_required, run in runs if not is_required), default=0)

    @property
    def _names_others(self) -> bool:
        """Whether members that the schema does not name are wanted: where it speaks of them, or names none at all.

        Elsewhere they are valid too, but models that may invent members do so without end.
        """
        return not self.members or any(group.is_complete or group.matching for group in self._groups)

    def _names(self) -> list[str]:
        declared = [name for group in self._groups for name, _ in group.named]
        return list(dict.fromkeys([*declared, *(fact.name for fact in of_type(self._facts, Required))]))

    def _goals(self, name: str) -> Goals:
        if not all(self._is_name(name, fact.goals) for fact in of_type(self._facts, Names)):
            return NOTHING
        goals = self._scope.book.simplified(together(group.of(name) for group in self._groups))
        return NOTHING if self._scope.book.is_impossible(goals) else goals

    def _is_name(self, name: str, goals: Goals) -> bool:
        cases = self._scope.book.cases(self._scope.book.simplified(goals))
        return any("string" in one.kinds and allows(name, one.of_kind("string")) for one in cases)

    def _state(self, name: str, count: int, following: Sequence[str]) -> str:
        alternatives: list[Alternative] = []
        if self._most is None or count < self._most:
            after = following[min(count + 1, self.last)]
            alternatives.append((*self._comma(count), *self._member(name), after))
        if name not in self.required:
            alternatives.append((following[count],))
        return self._scope.rules.rule(alternatives)

    def _comma(self, count: int) -> tuple[str, ...]:
        return (self._scope.terminal(COMMA),) if count else ()

    def _member(self, name: str) -> tuple[str, ...]:
        key = self._scope.rules.literal(spelled_value(name))
        return key, self._scope.terminal(COLON), self._scope.symbol(self.members[name])

    def _end(self, count: int) -> str:
        """Members that the schema does not name, as many as are still wanted. The same name may come again."""
        needed = max(0, self._least - count)
        room = None if self._most is None else self._most - count
        alternatives: list[Alternative] = [()] if needed == 0 else []
        if needed > 1:
            self._scope.note("minProperties with so few named properties is not supported.")
        elif (needed or self._names_others) and (room is None or room > 0):
            alternatives.append(self._others(count, None if room is None else room - 1))
        return self._scope.rules.rule(alternatives)

    def _others(self, count: int, room: int | None) -> Alternative:
        other = self._scope.rules.rule(self._other_members())
        return *self._comma(count), other, Repeat((self._scope.terminal(COMMA), other), 0, room)

    def _other_members(self) -> Iterator[Alternative]:
        patterns = list(dict.fromkeys(pattern for group in self._groups for pattern, _ in group.matching))
        if len(patterns) > MAX_PATTERNS:
            self._scope.note(f"more than {MAX_PATTERNS} patterns of properties are not supported.")
            return
        for hits in product((True, False), repeat=len(patterns)):
            goals = together(_goals_of(group, dict(zip(patterns, hits, strict=True))) for group in self._groups)
            if goals != NOTHING:
                for name in self._other_names(patterns, hits):
                    yield name, self._scope.terminal(COLON), self._scope.symbol(goals)

    def _other_names(self, patterns: Sequence[Pattern], hits: Sequence[bool]) -> Iterator[str]:
        """Terminals. A name is spelled without escapes, so in one way only."""
        conditions = [_PLAIN_NAME]
        named = self._names()
        if named:
            conditions.append(f"~{spelled_literals(named)}")
        for pattern, hit in zip(patterns, hits, strict=True):
            conditions.append(matching(pattern, holds=hit))
        goals = self._scope.book.simplified(together(fact.goals for fact in of_type(self._facts, Names)))
        for one in self._scope.book.cases(goals):
            if "string" in one.kinds:
                yield from self._names_in(one.of_kind("string"), conditions)

    def _names_in(self, facts: Sequence[Fact], conditions: Sequence[str]) -> list[str]:
        return string_symbols(facts, self._scope.rules, *conditions)


def _goals_of(group: Members, hits: dict[Pattern, bool]) -> Goals:
    found = [goals for pattern, goals in group.matching if hits[pattern]]
    return together(found) if found else group.additional
