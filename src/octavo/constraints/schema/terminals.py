"""Terminals of a grammar, and expressions in Lark's notation that they are made of."""

import re
from collections.abc import Sequence

from octavo.constraints.schema.patterns import Pattern
from octavo.constraints.schema.rules import Rules
from octavo.constraints.schema.values import spelled_value


def one_of(values: Sequence[object], rules: Rules, *conditions: str) -> list[str]:
    """The symbol for those of some scalars that fulfil the conditions, which are expressions; empty where none does."""
    if not values:
        return []
    if not conditions:
        return [rules.literal(*map(spelled_value, values))]
    symbol = rules.terminal(" & ".join([spelled_literals(values), *conditions]))
    return [symbol] if symbol else []


def matching(pattern: Pattern, *, holds: bool) -> str:
    """Strings that a pattern matches, or that it does not match, in all dialects."""
    return regex_of(f'"{pattern.spelled}"') if holds else "~" + regex_of(f'"{pattern.spelled_widely}"')


def spelled_literals(values: Sequence[object]) -> str:
    """What is one of these scalars."""
    return regex_of("|".join(re.escape(spelled_value(value)) for value in values))


def regex_of(text: str) -> str:
    """A regular expression."""
    escaped = text.replace("/", r"\/")
    return f"/{escaped}/"
