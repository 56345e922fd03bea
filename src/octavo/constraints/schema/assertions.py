"""The facts that a schema's own keywords say of a value; what they say of one kind says nothing of the others."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from octavo.constraints.schema.facts import (
    ANYTHING,
    Bound,
    Case,
    Contains,
    Fact,
    Goal,
    Goals,
    Items,
    Matching,
    Members,
    Multiple,
    Names,
    Required,
    Size,
    Unique,
    Whole,
)
from octavo.constraints.schema.formats import FORMATS
from octavo.constraints.schema.paths import Path, unsupported
from octavo.constraints.schema.pattern_nodes import PatternError
from octavo.constraints.schema.patterns import Pattern, parsed, whole
from octavo.constraints.schema.values import KINDS, decimal

Schema = Mapping[str, Any]


def facts_case(path: Path, schema: Schema) -> Case:
    """All of them, as one case."""
    kinds = frozenset(KINDS)
    facts: list[Fact] = []
    if "type" in schema:
        kinds, facts = typed(schema["type"])
    facts += [fact for rule in _RULES for fact in rule(path, schema)]
    return Case(kinds) & Case(facts=tuple(facts))


def typed(types: str | list[str]) -> tuple[frozenset[str], list[Fact]]:
    names = {types} if isinstance(types, str) else set(types)
    kinds = frozenset("number" if name == "integer" else name for name in names)
    return kinds, [Whole()] if "integer" in names and "number" not in names else []


def bounds(schema: Schema) -> list[Bound]:
    """Also with the flags that draft 4 has beside them."""
    found = []
    for limit, exclusive, is_lower in _BOUNDS:
        flag = schema.get(exclusive)
        if limit in schema:
            found.append(Bound(decimal(schema[limit]), is_lower, flag is True))
        if not isinstance(flag, bool | None):
            found.append(Bound(decimal(flag), is_lower, True))
    return found


def sizes(schema: Schema) -> list[Size]:
    return [
        Size(kind, int(schema.get(least, 0)), None if schema.get(most) is None else int(schema[most]))
        for kind, least, most in SIZES
        if least in schema or most in schema
    ]


def pattern_at(path: Path, source: str) -> Pattern:
    try:
        return parsed(source)
    except PatternError as error:
        raise unsupported(path, f"the regular expression is not supported: {error}") from error


def items(path: Path, schema: Schema) -> Items | None:
    """Also as drafts before 2020-12 spell it: a list of `items`, then `additionalItems`."""
    is_old = isinstance(schema.get("items"), list)
    first, others = ("items", "additionalItems") if is_old else ("prefixItems", "items")
    if first not in schema and others not in schema:
        return None
    count = len(schema.get(first, []))
    goals = tuple((Goal((*path, first, index)),) for index in range(count))
    return Items(goals, _goal(path, schema, others), is_complete=others in schema)


def contains(path: Path, schema: Schema) -> Contains | None:
    if "contains" not in schema:
        return None
    most = schema.get("maxContains")
    return Contains(Goal((*path, "contains")), int(schema.get("minContains", 1)), None if most is None else int(most))


def _number_facts(path: Path, schema: Schema) -> Iterable[Fact]:
    yield from bounds(schema)
    if "multipleOf" in schema:
        yield Multiple(decimal(schema["multipleOf"]))


def _string_facts(path: Path, schema: Schema) -> Iterable[Fact]:
    if "pattern" in schema:
        yield Matching(pattern_at((*path, "pattern"), schema["pattern"]))
    if schema.get("format") in FORMATS:
        yield Matching(whole(FORMATS[schema["format"]]))


def _array_facts(path: Path, schema: Schema) -> Iterable[Fact]:
    for fact in (items(path, schema), contains(path, schema)):
        if fact is not None:
            yield fact
    if schema.get("uniqueItems"):
        yield Unique()


def _object_facts(path: Path, schema: Schema) -> Iterable[Fact]:
    if not schema.keys().isdisjoint(("properties", "patternProperties", "additionalProperties")):
        named = {name: (Goal((*path, "properties", name)),) for name in schema.get("properties", {})}
        matching = {
            pattern_at((*path, "patternProperties", source), source): (Goal((*path, "patternProperties", source)),)
            for source in schema.get("patternProperties", {})
        }
        additional = _goal(path, schema, "additionalProperties")
        is_complete = "additionalProperties" in schema
        yield Members(tuple(named.items()), tuple(matching.items()), additional, is_complete=is_complete)
    yield from map(Required, schema.get("required", []))
    if "propertyNames" in schema:
        yield Names((Goal((*path, "propertyNames")),))


def _goal(path: Path, schema: Schema, keyword: str) -> Goals:
    return (Goal((*path, keyword)),) if keyword in schema else ANYTHING


_BOUNDS = (("minimum", "exclusiveMinimum", True), ("maximum", "exclusiveMaximum", False))
SIZES = (
    ("string", "minLength", "maxLength"),
    ("array", "minItems", "maxItems"),
    ("object", "minProperties", "maxProperties"),
)
_RULES: tuple[Callable[[Path, Schema], Iterable[Fact]], ...] = (
    _number_facts,
    _string_facts,
    _array_facts,
    _object_facts,
    lambda path, schema: sizes(schema),
)
KEYWORDS = frozenset(
    {"type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minLength", "maxLength", "pattern", "format"}
    | {"items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"}
    | {"properties", "patternProperties", "additionalProperties", "required", "propertyNames"}
    | {"minProperties", "maxProperties"}
)
"""What this file speaks for."""
