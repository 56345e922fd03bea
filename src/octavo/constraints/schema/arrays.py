"""Arrays that facts allow, as alternatives of a rule."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from octavo.constraints.schema.distinct import classes
from octavo.constraints.schema.facts import (
    NOTHING,
    Contains,
    Fact,
    Goals,
    Items,
    Relation,
    Unique,
    of_type,
    size_of,
    together,
)
from octavo.constraints.schema.punctuation import CLOSE_ARRAY, COMMA, OPEN_ARRAY
from octavo.constraints.schema.rules import Alternative, Distinct, Repeat, sequence_of
from octavo.constraints.schema.scope import Scope

MAX_ITEMS = 4096
"""A larger minimum is refused; a larger maximum is this one."""
MAX_COUNTED_ITEMS = 128
"""A larger maximum is this one where items are counted."""
MAX_STEPS = 2048
"""Between the states of the automaton that counts items."""


def array_alternatives(facts: Sequence[Fact], scope: Scope) -> list[Alternative]:
    found = [] if size_of(facts)[0] > MAX_ITEMS else list(_bodies(facts, scope))
    opening, closing = scope.terminal(OPEN_ARRAY), scope.terminal(CLOSE_ARRAY)
    return [(opening, *body, closing) for body in found]


def _bodies(facts: Sequence[Fact], scope: Scope) -> Iterator[Alternative]:
    least, most = size_of(facts)
    most = None if most is None else min(most, MAX_ITEMS)
    if of_type(facts, Unique) and (most is None or most > 1):
        yield from _unique(facts, least, most, scope)
    elif of_type(facts, Contains):
        yield from _counted(facts, least, most, scope)
    else:
        yield from _plain(_Places(facts), least, most, scope)


class _Places:
    """What holds of the item at an index."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._items = of_type(facts, Items)
        self.count = max((len(items.first) for items in self._items), default=0)
        """From there on, all are alike."""

    def __getitem__(self, index: int) -> Goals:
        return together(items.first[index] if index < len(items.first) else items.others for items in self._items)


def _plain(places: _Places, least: int, most: int | None, scope: Scope) -> Iterator[Alternative]:
    comma = scope.terminal(COMMA)
    top = places.count if most is None else min(places.count, most)
    first = [scope.symbol(places[index]) for index in range(top)]
    for count in range(least, top):
        yield sequence_of(first[:count], comma)
    room = None if most is None else most - top
    if top == 0 and least == 0:
        yield ()
    if room == 0 and top and top >= least:
        yield sequence_of(first, comma)
    if room != 0:
        yield from _tail(first, scope.symbol(places[top]), comma, max(0, least - top), room)


def _tail(first: list[str], other: str, comma: str, least: int, room: int | None) -> Iterator[Alternative]:
    if first:
        yield (*sequence_of(first, comma), Repeat((comma, other), least, room))
    else:
        yield (other, Repeat((comma, other), max(0, least - 1), None if room is None else room - 1))


def _counted(facts: Sequence[Fact], least: int, most: int | None, scope: Scope) -> Iterator[Alternative]:
    """Automaton of which a state is an index, as far as it matters, and how many items each `contains` has got."""
    most = None if most is None else min(most, max(least, MAX_COUNTED_ITEMS))
    counts = _Counts(of_type(facts, Contains), _Places(facts), least, most)
    if counts.num_states * 2 ** len(of_type(facts, Contains)) <= MAX_STEPS:
        names: dict[tuple[int, ...], str] = {}
        yield (_state(counts.start, counts, names, scope),)
    else:
        scope.note("contains with so many items is not supported.")


class _Counts:
    def __init__(self, contains: Sequence[Contains], places: _Places, least: int, most: int | None) -> None:
        self._contains = contains
        self._places = places
        self._least, self._most = least, most
        self._last = max(1, places.count, least) if most is None else most
        self._tops = [max(one.minimum, (one.maximum or 0)) for one in contains]
        self.start = (0,) * (len(contains) + 1)

    @property
    def num_states(self) -> int:
        found = self._last + 1
        for top in self._tops:
            found *= top + 1
        return found

    def is_end(self, state: tuple[int, ...]) -> bool:
        enough = all(count >= one.minimum for count, one in zip(state[1:], self._contains, strict=True))
        return state[0] >= self._least and enough

    def steps(self, state: tuple[int, ...]) -> Iterator[tuple[Goals, tuple[int, ...]]]:
        """Each next item, and the state behind it."""
        if self._most is not None and state[0] >= self._most:
            return
        base = self._places[state[0]]
        for choice in product((True, False), repeat=len(self._contains)):
            following = self._following(state[1:], choice)
            if following is not None:
                goals = together(
                    [base, *(self._goals(one, hit) for one, hit in zip(self._contains, choice, strict=True))]
                )
                yield goals, (min(state[0] + 1, self._last), *following)

    def _following(self, counts: tuple[int, ...], choice: tuple[bool, ...]) -> list[int] | None:
        found = []
        for count, hit, top in zip(counts, choice, self._tops, strict=True):
            if hit and count >= top:
                return None
            found.append(count + hit)
        return found

    def _goals(self, one: Contains, hit: bool) -> Goals:
        if hit:
            return (one.goal,)
        return () if one.maximum is None else (replace(one.goal, relation=Relation.INVALID),)


def _state(state: tuple[int, ...], counts: _Counts, names: dict[tuple[int, ...], str], scope: Scope) -> str:
    pending = [state]
    names[state] = scope.rules.fresh()
    while pending:
        at = pending.pop()
        alternatives: list[Alternative] = [()] if counts.is_end(at) else []
        comma = () if at == counts.start else (scope.terminal(COMMA),)
        for goals, following in counts.steps(at):
            if following not in names:
                names[following] = scope.rules.fresh()
                pending.append(following)
            alternatives.append((*comma, scope.symbol(goals), names[following]))
        scope.rules.define(names[at], alternatives)
    return names[state]


def _unique(facts: Sequence[Fact], least: int, most: int | None, scope: Scope) -> Iterator[Alternative]:
    places = _Places(facts)
    if of_type(facts, Contains) or (places.count and places[places.count] != NOTHING):
        scope.note("uniqueItems with contains or prefixItems is not supported.")
        if least <= 1 and not of_type(facts, Contains):
            yield from _plain(places, least, 1, scope)
        return
    if places.count:
        scope.note("uniqueItems with prefixItems is not supported.")
        return
    symbols = tuple(classes(places[0], scope))
    limit = len(symbols) if most is None else min(most, len(symbols))
    if least <= limit:
        yield (scope.rules.distinct(Distinct(symbols, scope.terminal(COMMA), least, limit)),)
