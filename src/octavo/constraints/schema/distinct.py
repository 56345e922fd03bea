"""Kinds of items of which each may come once in a list without equal ones.

What is in two classes differs, so a list of items of different classes has no equal items. Strings are told apart by
their first two characters, numbers by their last digit and length; of objects and arrays there is one class.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from octavo.constraints.schema.facts import Fact, Goals
from octavo.constraints.schema.numbers import number_symbols
from octavo.constraints.schema.pattern_nodes import CHARACTER
from octavo.constraints.schema.possible import allowed_values
from octavo.constraints.schema.rules import MAX_DISTINCT, Rules
from octavo.constraints.schema.scope import Scope
from octavo.constraints.schema.strings import string_symbols
from octavo.constraints.schema.values import KINDS, key_of, spelled_value

_FIRST = ("a-bA-B", "c-dC-D", "e-gE-G", "h-lH-L", "m-oM-O", "pP", "q-tQ-T")
_SECOND = ("a-dA-D", "e-gE-G", "h-kH-K", "l-nL-N", "o-qO-Q", "r-tR-T")


def classes(goals: Goals, scope: Scope) -> Iterator[str]:
    """Symbols, no two of which stand for equal values."""
    cases = scope.book.cases(scope.book.simplified(goals))
    kinds = [kind for kind in KINDS if any(kind in one.kinds for one in cases)]
    for kind in kinds:
        of_kind = [one.of_kind(kind) for one in cases if kind in one.kinds]
        yield from islice(_of_kind(kind, of_kind, goals, scope), MAX_DISTINCT // len(kinds))


def _of_kind(kind: str, cases: Sequence[Sequence[Fact]], goals: Goals, scope: Scope) -> Iterator[str]:
    values = [allowed_values(kind, facts) for facts in cases]
    if all(known is not None for known in values):
        distinct = {key_of(value): value for known in values for value in known or ()}
        yield from (scope.rules.literal(spelled_value(value)) for value in distinct.values())
    elif kind in ("string", "number"):
        conditions = _STRINGS if kind == "string" else _NUMBERS
        for condition in conditions:
            symbols = [symbol for facts in cases for symbol in _scalars(kind, facts, scope.rules, condition)]
            if symbols:
                yield scope.rules.rule((symbol,) for symbol in symbols)
    elif cases:
        yield scope.symbol(goals, kind)


def _scalars(kind: str, facts: Sequence[Fact], rules: Rules, condition: str) -> list[str]:
    return (string_symbols if kind == "string" else number_symbols)(facts, rules, condition)


def _groups(letters: tuple[str, ...]) -> list[str]:
    """Classes of characters: these, and one of all others."""
    return [*(f"[{group}]" for group in letters), "[^" + "".join(letters) + r'"\\\x00-\x1f\x7f]']


def _string_classes() -> Iterator[str]:
    for first in _groups(_FIRST):
        yield from (f'/"{first}{second}{CHARACTER}*"/' for second in _groups(_SECOND))
        yield f'/"{first}"/'


_STRINGS = tuple(_string_classes())
_NUMBERS = tuple(
    rf"/-?(?:0|[1-9][0-9]*)/ & /{sign}{before}{digit}/"
    for sign in ("", "-")
    for before in ("", "[0-9]", "[0-9]{2,}")
    for digit in range(10)
    if sign == "" or before or digit
)
