"""Facts that contradict each other."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from octavo.constraints.schema.facts import (
    Among,
    Bound,
    Case,
    Contains,
    Except,
    Fact,
    Goals,
    Matching,
    Members,
    Multiple,
    Required,
    Size,
    Whole,
    of_type,
    size_of,
    together,
)
from octavo.constraints.schema.values import decimal, key_of

_FEW: dict[str, tuple[object, ...]] = {"boolean": (True, False), "null": (None,)}


def possible_kinds(one: Case, is_impossible: Callable[[Goals], bool]) -> frozenset[str]:
    """The kinds of which a value may be in the case; a kind is left out only where none can."""
    return frozenset(kind for kind in one.kinds if _is_possible(kind, one.of_kind(kind), is_impossible))


def allowed_values(kind: str, facts: Sequence[Fact]) -> list[object] | None:
    """The scalars of a kind that all its facts allow; None where they are not so few that they are named."""
    among = of_type(facts, Among)
    values = among[0].values if among else _FEW.get(kind)
    return None if values is None else [value for value in values if allows(value, facts)]


def allows(value: object, facts: Sequence[Fact]) -> bool:
    """Whether all facts hold of a scalar of their kind."""
    return all(_holds(fact, value) for fact in facts)


def _holds(fact: Fact, value: Any) -> bool:
    match fact:
        case Among():
            return key_of(value) in fact.keys
        case Except():
            return key_of(value) not in fact.keys
        case Matching():
            return fact.pattern.matches(value) if fact.holds else not fact.pattern.may_match(value)
        case Size():
            return fact.minimum <= len(value) and (fact.maximum is None or len(value) <= fact.maximum)
    return _holds_of_number(fact, decimal(value))


def _holds_of_number(fact: Fact, number: Decimal) -> bool:
    match fact:
        case Whole():
            return (number == number.to_integral_value()) is fact.holds
        case Bound(limit, is_lower, is_exclusive):
            return (number > limit if is_lower else number < limit) or (number == limit and not is_exclusive)
        case Multiple(step):
            return Fraction(number) % Fraction(step) == 0
    return True


def _is_possible(kind: str, facts: Sequence[Fact], is_impossible: Callable[[Goals], bool]) -> bool:
    if allowed_values(kind, facts) == []:
        return False
    least, most = size_of(facts)
    if most is not None and least > most:
        return False
    if kind == "number":
        return _has_room(of_type(facts, Bound))
    if any(one.maximum is not None and one.minimum > one.maximum for one in of_type(facts, Contains)):
        return False
    return kind != "object" or not any(
        is_impossible(together(members.of(required.name) for members in of_type(facts, Members)))
        for required in of_type(facts, Required)
    )


def _has_room(bounds: Sequence[Bound]) -> bool:
    lower = [bound for bound in bounds if bound.is_lower]
    upper = [bound for bound in bounds if not bound.is_lower]
    return all(
        low.value < high.value or (low.value == high.value and not low.is_exclusive and not high.is_exclusive)
        for low in lower
        for high in upper
    )
