"""Numbers that facts allow, as symbols of a grammar.

They have at most 15 significant digits where they are compared, so that a reader who takes them for doubles finds the
order and the differences that their texts have.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil, gcd, lcm

from octavo.constraints.schema.facts import Bound, Except, Fact, Multiple, Whole, of_type
from octavo.constraints.schema.possible import allowed_values, allows
from octavo.constraints.schema.ranges import between
from octavo.constraints.schema.rules import Rules
from octavo.constraints.schema.terminals import one_of

_DIGITS = 15
_WIDE = Decimal(10**9)
_MAX_PLACES = 10
_MAX_TINY_PLACES = 40
_MAX_COEFFICIENT = 1000
"""Above, llguidance has too many states to tell what is a multiple."""
_EXACT = Fraction(2**50)
"""Up to here llguidance, which takes bounds for doubles, is exact."""
_FEW = 64
"""Multiples to both sides of 0 or of the lower bound, where not all can be generated."""
_INTEGER = "-?(?:0|[1-9][0-9]{0,14})"
_NUMBER = rf"{_INTEGER}(?:\.[0-9]{{1,15}})?(?:[eE][+\-]?[0-9]{{1,2}})?"
_FRACTION = r"-?(?:(?:0|[1-9][0-9]{0,4})\.[0-9]{0,9}[1-9]|[1-9][0-9]{5,9}\.[0-9]{0,4}[1-9])"
"""Of at most 15 digits: with more, the next double may be a whole number."""
_WITH_FRACTION = r"/-?[0-9]+\.[0-9]*[1-9]/"


@dataclass(frozen=True, slots=True)
class _Interval:
    low: Bound | None
    high: Bound | None


def number_symbols(facts: Sequence[Fact], rules: Rules, *conditions: str) -> list[str]:
    """conditions: expressions of terminals that hold as well."""
    values = allowed_values("number", facts)
    if values is not None:
        return one_of(values, rules, *conditions)
    whole = {fact.holds for fact in of_type(facts, Whole)}
    if whole == {True, False}:
        return []
    if whole == {False}:
        conditions = (*conditions, _WITH_FRACTION)
    if step := _step(facts):
        return _multiples(step, facts, rules) if not conditions else []
    found = (rules.terminal(" & ".join([f"/{text}/", *conditions])) for text in _texts(facts))
    return [symbol for symbol in found if symbol]


def _texts(facts: Sequence[Fact]) -> Iterator[str]:
    """Regular expressions."""
    is_whole = next((fact.holds for fact in of_type(facts, Whole)), None)
    if not of_type(facts, Bound) and not of_type(facts, Except):
        yield {True: _INTEGER, False: _FRACTION, None: _NUMBER}[is_whole]
        return
    for interval in _intervals(facts):
        low, high, places = _grid(interval, is_whole=is_whole is True)
        if low <= high:
            yield between(low, high, places)


def _intervals(facts: Sequence[Fact]) -> list[_Interval]:
    """From bound to bound, where values that are excluded are bounds too."""
    excluded = sorted({key[1] for fact in of_type(facts, Except) for key in fact.keys})
    bounds = of_type(facts, Bound)
    lower = [bound for bound in bounds if bound.is_lower]
    upper = [bound for bound in bounds if not bound.is_lower]
    lows = [lower, *([*lower, Bound(value, True, True)] for value in excluded)]
    highs = [*([*upper, Bound(value, False, True)] for value in excluded), upper]
    return [_Interval(_highest(low), _lowest(high)) for low, high in zip(lows, highs, strict=True)]


def _highest(lower: Sequence[Bound]) -> Bound | None:
    return max(lower, key=lambda bound: (bound.value, bound.is_exclusive), default=None)


def _lowest(upper: Sequence[Bound]) -> Bound | None:
    return min(upper, key=lambda bound: (bound.value, not bound.is_exclusive), default=None)


def _grid(interval: _Interval, *, is_whole: bool) -> tuple[int, int, int]:
    """The least and the greatest number in units of 10**-places, and how many places those are."""
    low, high = _ends(interval, is_whole=is_whole)
    places = 0 if is_whole else _places(low.value, high.value)
    return _least(low, places), -_least(Bound(-high.value, True, high.is_exclusive), places), places


def _ends(interval: _Interval, *, is_whole: bool) -> tuple[Bound, Bound]:
    """Bounds on both sides, far away where there were none."""
    known = max((abs(bound.value) for bound in (interval.low, interval.high) if bound), default=Decimal(0))
    reach = max(Decimal(10**_DIGITS - 1) if is_whole else _WIDE - 1, known * 1000)
    return interval.low or Bound(-reach, True, False), interval.high or Bound(reach, False, False)


def _places(low: Decimal, high: Decimal) -> int:
    """As many as there is room for, and as small bounds ask for."""
    exponents = [bound.adjusted() for bound in (low, high) if bound]
    room = _DIGITS - 1 - max(exponents, default=0)
    wanted = max([_MAX_PLACES, *(3 - exponent for exponent in exponents)])
    return max(0, min(room, wanted, _MAX_TINY_PLACES))


def _least(bound: Bound, places: int) -> int:
    scaled = Fraction(bound.value) * Fraction(10) ** places
    least = ceil(scaled)
    return least + 1 if bound.is_exclusive and least == scaled else least


def _step(facts: Sequence[Fact]) -> Fraction | None:
    """What all numbers are multiples of, so that also their quotients as doubles are whole."""
    steps = [Fraction(multiple.of) for multiple in of_type(facts, Multiple)]
    if not steps:
        return None
    steps += [Fraction(1)] * bool(of_type(facts, Whole))
    if any(step.denominator & (step.denominator - 1) for step in steps):
        steps.append(Fraction(1, 4))
    numerators, denominators = [step.numerator for step in steps], [step.denominator for step in steps]
    return Fraction(lcm(*numerators), gcd(*denominators))


def _multiples(step: Fraction, facts: Sequence[Fact], rules: Rules) -> list[str]:
    if all(map(_is_near, of_type(facts, Multiple))) and _coefficient(step) < _MAX_COEFFICIENT:
        return list(_all_multiples(step, facts, rules))
    low = _highest([bound for bound in of_type(facts, Bound) if bound.is_lower])
    middle = ceil(Fraction(low.value) / step) if low else 0
    few = [_plain(step * count) for count in range(middle - _FEW, middle + _FEW + 1)]
    return one_of([value for value in few if allows(value, facts) and _is_whole_as_double(value, facts)], rules)


def _is_near(multiple: Multiple) -> bool:
    """Whether the step as a double is so near to it that quotients of doubles that are its multiples are whole."""
    return abs(Fraction(float(multiple.of)) / Fraction(multiple.of) - 1) <= Fraction(1, 2**54)


def _is_whole_as_double(value: int | float, facts: Sequence[Fact]) -> bool:
    return all((value / float(multiple.of)).is_integer() for multiple in of_type(facts, Multiple))


def _coefficient(step: Fraction) -> int:
    """Its digits without the point and the zeros at the end."""
    return int(_spelled(step).replace(".", "").rstrip("0"))


def _all_multiples(step: Fraction, facts: Sequence[Fact], rules: Rules) -> Iterator[str]:
    for interval in _intervals(facts):
        units = _grid(interval, is_whole=False)
        low, high = (Fraction(end, 10 ** units[2]) for end in units[:2])
        if low <= 0 <= high:
            yield rules.literal("0")
        for sign, least, most in (("", max(low, step), high), ("-", max(-high, step), -low)):
            if ceil(least / step) * step <= most:
                yield _positive_multiples(sign, step, least, most, rules)


def _positive_multiples(sign: str, step: Fraction, least: Fraction, most: Fraction, rules: Rules) -> str:
    first, last = ceil(least / step) * step, min(most, _EXACT) // step * step
    if first >= last:
        return rules.literal(sign + _spelled(first))
    zeros = _zeros(step)
    shorter, first, last = (number / 10 ** len(zeros) for number in (step, first, last))
    schema = {
        "type": "number" if shorter.denominator > 1 else "integer",
        "multipleOf": _plain(shorter),
        "minimum": _plain(first),
        "maximum": _plain(last),
    }
    body = f"%json {json.dumps(schema)}"
    return rules.raw(" ".join([*([json.dumps(sign)] * bool(sign)), body, *([json.dumps(zeros)] * bool(zeros))]))


def _zeros(step: Fraction) -> str:
    """Those at the end of every multiple."""
    text = str(step)
    return text[len(text.rstrip("0")) :] if step.denominator == 1 else ""


def _plain(number: Fraction) -> int | float:
    return int(number) if number.denominator == 1 else float(number)


def _spelled(number: Fraction) -> str:
    return format(Decimal(number.numerator) / Decimal(number.denominator), "f")
