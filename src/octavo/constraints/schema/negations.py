"""Cases of values for which one of a schema's own keywords does not hold.

Where a keyword's opposite cannot be said (of `format`, `multipleOf`, `uniqueItems`, `additionalProperties`,
`patternProperties`, `propertyNames`), it adds no case: less is generated than is allowed.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from octavo.constraints.schema import assertions
from octavo.constraints.schema.facts import (
    ANYTHING,
    NOTHING,
    Bound,
    Case,
    Contains,
    Goal,
    Items,
    Matching,
    Members,
    Relation,
    Required,
    Size,
    Whole,
    case,
)
from octavo.constraints.schema.paths import Path
from octavo.constraints.schema.values import KINDS

Schema = Mapping[str, Any]


def negated_cases(path: Path, schema: Schema) -> list[Case]:
    return [one for rule in _RULES for one in rule(path, schema)]


def _types(_: Path, schema: Schema) -> Iterable[Case]:
    if "type" not in schema:
        return
    kinds, facts = assertions.typed(schema["type"])
    yield Case(frozenset(KINDS) - kinds)
    if facts:
        yield case(Whole(holds=False), only=True)


def _bounds(_: Path, schema: Schema) -> Iterable[Case]:
    for bound in assertions.bounds(schema):
        yield case(Bound(bound.value, not bound.is_lower, not bound.is_exclusive), only=True)


def _sizes(_: Path, schema: Schema) -> Iterable[Case]:
    for size in assertions.sizes(schema):
        if size.minimum:
            yield case(Size(size.kind, 0, size.minimum - 1), only=True)
        if size.maximum is not None:
            yield case(Size(size.kind, size.maximum + 1, None), only=True)


def _pattern(path: Path, schema: Schema) -> Iterable[Case]:
    if "pattern" in schema:
        pattern = assertions.pattern_at((*path, "pattern"), schema["pattern"])
        yield case(Matching(pattern, holds=False), only=True)


def _items(path: Path, schema: Schema) -> Iterable[Case]:
    items = assertions.items(path, schema)
    for index, goals in enumerate((*items.first, items.others) if items else ()):
        wrong = tuple(replace(goal, relation=Relation.INVALID) for goal in goals)
        if wrong:
            yield case(Items((*[ANYTHING] * index, wrong), ANYTHING), Size("array", index + 1, None), only=True)


def _contains(path: Path, schema: Schema) -> Iterable[Case]:
    contains = assertions.contains(path, schema)
    if contains is None:
        return
    if contains.minimum:
        yield case(Contains(contains.goal, 0, contains.minimum - 1), only=True)
    if contains.maximum is not None:
        yield case(Contains(contains.goal, contains.maximum + 1, None), only=True)


def _members(path: Path, schema: Schema) -> Iterable[Case]:
    for name in schema.get("required", []):
        yield case(Members(((name, NOTHING),)), only=True)
    for name in schema.get("properties", {}):
        wrong = (Goal((*path, "properties", name), Relation.INVALID),)
        yield case(Members(((name, wrong),)), Required(name), only=True)


_RULES: tuple[Callable[[Path, Schema], Iterable[Case]], ...] = (
    _types,
    _bounds,
    _sizes,
    _pattern,
    _items,
    _contains,
    _members,
)
