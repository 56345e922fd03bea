"""Strings that facts allow, as symbols of a grammar. Each code point has one spelling."""

import re
from collections.abc import Sequence

from octavo.constraints.schema.facts import Except, Fact, Matching, of_type, size_of
from octavo.constraints.schema.patterns import CHARACTER
from octavo.constraints.schema.possible import allowed_values
from octavo.constraints.schema.rules import Rules
from octavo.constraints.schema.values import spelled_value

MAX_LENGTH = 65_536
"""A longer minimum is refused; a longer maximum is this one."""


def string_symbols(facts: Sequence[Fact], rules: Rules, *conditions: str) -> list[str]:
    """conditions: expressions of terminals that hold as well."""
    values = allowed_values("string", facts)
    if values is not None:
        return [rules.literal(*map(spelled_value, values))] if values else []
    symbol = rules.terminal(" & ".join([*_expressions(facts), *conditions]))
    return [symbol] if symbol else []


def spelled_literals(texts: Sequence[str]) -> str:
    """An expression of what is one of these strings."""
    return regex_of("|".join(re.escape(spelled_value(text)) for text in texts))


def regex_of(text: str) -> str:
    """A regular expression in Lark's notation."""
    escaped = text.replace("/", r"\/")
    return f"/{escaped}/"


def _expressions(facts: Sequence[Fact]) -> list[str]:
    matching = of_type(facts, Matching)
    found = [("" if fact.holds else "~") + regex_of(f'"{fact.pattern.spelled}"') for fact in matching]
    excluded = [text for fact in of_type(facts, Except) for _, text in sorted(fact.keys)]
    if excluded:
        found.append(f"~{spelled_literals(excluded)}")
    least, most = size_of(facts)
    if least or most is not None or not any(fact.holds for fact in matching):
        found.insert(0, regex_of(f'"{CHARACTER}{_count(least, most)}"'))
    return found


def _count(least: int, most: int | None) -> str:
    if most is None or most > MAX_LENGTH:
        return f"{{{least},}}" if least else "*"
    return f"{{{least},{most}}}"
