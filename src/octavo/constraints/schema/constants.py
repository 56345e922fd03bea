"""Cases of values that equal a constant of the document, or differ from it."""

from collections.abc import Iterable, Mapping
from typing import Any

from octavo.constraints.schema.facts import (
    ANYTHING,
    NOTHING,
    Among,
    Case,
    Except,
    Goal,
    Items,
    Members,
    Relation,
    Required,
    Size,
    case,
)
from octavo.constraints.schema.paths import Path
from octavo.constraints.schema.values import KINDS, key_of, kind_of


def is_scalar(value: Any) -> bool:
    return not isinstance(value, list | Mapping)


def among(values: Iterable[Any]) -> list[Case]:
    """Scalars that equal one of these."""
    by_kind: dict[str, dict[Any, Any]] = {}
    for value in values:
        by_kind.setdefault(kind_of(value), {}).setdefault(key_of(value), value)
    facts = [Among(kind, tuple(known.values()), frozenset(known)) for kind, known in by_kind.items()]
    return [case(*facts, only=True)] if facts else []


def none_of(values: Iterable[Any]) -> Case:
    """What equals none of these scalars."""
    keys: dict[str, set[Any]] = {}
    for value in values:
        keys.setdefault(kind_of(value), set()).add(key_of(value))
    kinds = frozenset(KINDS) - ({"null"} if "null" in keys else set())
    return Case(kinds) & case(*(Except(kind, frozenset(known)) for kind, known in keys.items() if kind != "null"))


def equal_cases(path: Path, value: Any) -> list[Case]:
    match value:
        case list():
            goals = tuple((Goal((*path, index), Relation.EQUAL),) for index in range(len(value)))
            size = Size("array", len(value), len(value))
            return [case(Items(goals, NOTHING, evaluates=False), size, only=True)]
        case Mapping():
            named = tuple((name, (Goal((*path, name), Relation.EQUAL),)) for name in value)
            members = Members(named, additional=NOTHING, evaluates=False)
            return [case(members, *map(Required, value), only=True)]
    return among([value])


def unequal_cases(path: Path, value: Any) -> list[Case]:
    """Not all of them where the constant is a list or an object."""
    others = Case(frozenset(KINDS) - {kind_of(value)})
    match value:
        case list():
            return [others, *_other_lists(path, value)]
        case Mapping():
            return [others, *_other_objects(path, value)]
    return [none_of([value])]


def _other_lists(path: Path, value: list[Any]) -> list[Case]:
    count = len(value)
    cases = [case(Size("array", count + 1, None), only=True)]
    if count:
        cases.append(case(Size("array", 0, count - 1), only=True))
    for index in range(count):
        goals = (*[ANYTHING] * index, (Goal((*path, index), Relation.UNEQUAL),))
        items = Items(goals, ANYTHING, evaluates=False)
        cases.append(case(items, Size("array", index + 1, None), only=True))
    return cases


def _other_objects(path: Path, value: Mapping[str, Any]) -> list[Case]:
    cases = [case(Size("object", len(value) + 1, None), only=True)]
    for name in value:
        cases.append(case(Members(((name, NOTHING),), evaluates=False), only=True))
        goals = (Goal((*path, name), Relation.UNEQUAL),)
        cases.append(case(Members(((name, goals),), evaluates=False), Required(name), only=True))
    return cases
