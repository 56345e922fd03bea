"""Strings that facts allow, as symbols of a grammar. Each code point has one spelling."""

from collections.abc import Sequence

from octavo.constraints.schema.facts import Except, Fact, Matching, of_type, size_of
from octavo.constraints.schema.pattern_nodes import CHARACTER
from octavo.constraints.schema.possible import allowed_values
from octavo.constraints.schema.rules import Rules
from octavo.constraints.schema.terminals import matching, one_of, regex_of, spelled_literals

MAX_LENGTH = 65_536
"""A longer minimum is refused; a longer maximum is this one."""


def string_symbols(facts: Sequence[Fact], rules: Rules, *conditions: str) -> list[str]:
    """conditions: expressions of terminals that hold as well."""
    values = allowed_values("string", facts)
    if values is not None:
        return one_of(values, rules, *conditions)
    symbol = rules.terminal(" & ".join([*_expressions(facts), *conditions]))
    return [symbol] if symbol else []


def _expressions(facts: Sequence[Fact]) -> list[str]:
    patterns = of_type(facts, Matching)
    found = [matching(fact.pattern, holds=fact.holds) for fact in patterns]
    excluded = [text for fact in of_type(facts, Except) for _, text in sorted(fact.keys)]
    if excluded:
        found.append(f"~{spelled_literals(excluded)}")
    least, most = size_of(facts)
    if least or most is not None or not any(fact.holds for fact in patterns):
        found.insert(0, regex_of(f'"{CHARACTER}{_count(least, most)}"'))
    return found


def _count(least: int, most: int | None) -> str:
    if most is None or most > MAX_LENGTH:
        return f"{{{least},}}" if least else "*"
    return f"{{{least},{most}}}"
