"""docs/json-schema.md, by what becomes of the schemas of the JSON Schema Test Suite.

PYTHONPATH=tests python -m support.json_schema_table
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path

from support.json_schema_verdicts import Verdict, verdicts
from support.languages import Language

DOCUMENT = Path(__file__).parents[2] / "docs" / "json-schema.md"

INTRODUCTION = """\
# JSON Schema

Which schemas are enforced on an answer, and which are refused because they cannot be.

This file is written by `make json-schema`; do not edit it. It tells what becomes of the schemas of the
[JSON Schema Test Suite](https://github.com/json-schema-org/JSON-Schema-Test-Suite), draft 2020-12.

{accepted} of {required} are accepted ({share:.0%}), and of the optional ones {optional_accepted} of {optional}.

A schema that is accepted is kept to by every answer that ends by itself. `tests/constraints/test_json_schema_suite.py`
writes answers at random and validates them with `jsonschema`, and tries to write every instance that the suite calls
invalid. A schema that is refused is answered with 422 and the path of the keyword. Nothing is left out silently, and
nothing is fetched.

An accepted schema is enforced, but not every value that is valid under it can be written. **Writable** counts the
suite's valid instances of accepted schemas, and those of them that can be, with the properties in one order or another.
"""
BOUNDS_HEADER = (
    "\n## Bounds\n\nOf any JSON, measured on the grammar of the schema `true`.\n\n| what | at most |\n|---|---|"
)
TABLE_HEADER = "| keyword | accepted | writable | refused because |\n|---|---|---|---|"
MANY = 2000
"""Beyond which something counts as without bound."""

BOUNDS: dict[str, Callable[[int], str]] = {
    "spaces between two values": lambda number: f"[1,{' ' * number}1]",
    "line ends between two values": lambda number: "[1,{}1]".format("\n" * number),
    "digits of an integer": lambda number: "1" * number,
    "digits behind the point": lambda number: f"0.{'1' * number}",
    "a positive exponent": lambda number: f"1e{number}",
    "a negative exponent": lambda number: f"1e-{number}",
    "characters of a string": lambda number: f'"{"x" * number}"',
    "elements of an array": lambda number: f"[{','.join('1' * number)}]",
    "arrays in each other": lambda number: "[" * number + "]" * number,
}


def render(found: Sequence[Verdict]) -> str:
    """The whole document."""
    required = [verdict for verdict in found if verdict.case.is_required]
    optional = [verdict for verdict in found if not verdict.case.is_required]
    accepted = _num_accepted(required)
    introduction = INTRODUCTION.format(
        accepted=accepted,
        required=len(required),
        share=accepted / len(required),
        optional_accepted=_num_accepted(optional),
        optional=len(optional),
    )
    sections = [introduction, *_bounds(), "\n## Keywords\n", *_table(required), "\n## Optional\n", *_table(optional)]
    return "\n".join(sections) + "\n"


def _bounds() -> Iterable[str]:
    yield BOUNDS_HEADER
    language = Language.of_schema(True)
    yield from (f"| {what} | {_bound(language, text)} |" for what, text in BOUNDS.items())


def _bound(language: Language, text: Callable[[int], str]) -> str:
    """By bisection: what can be written with a number can be written with a smaller one."""
    low, high = 0, MANY
    if text(high).encode() in language:
        return "no bound"
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if text(middle).encode() in language else (low, middle)
    return str(low)


def _table(found: Iterable[Verdict]) -> Iterable[str]:
    yield TABLE_HEADER
    for file, group in groupby(found, lambda verdict: verdict.case.file):
        yield _line(file.removeprefix("optional/"), list(group))


def _line(name: str, group: Sequence[Verdict]) -> str:
    valid = [each for verdict in group if verdict.is_accepted for each in verdict.case.instances if each.is_valid]
    writable = sum(instance.is_valid for verdict in group for instance in verdict.writable)
    reasons = Counter(_general(verdict.reason) for verdict in group if verdict.refusal)
    told = "; ".join(f"{reason} ({number})" if number > 1 else reason for reason, number in reasons.items())
    return f"| `{name}` | {_num_accepted(group)} of {len(group)} | {writable} of {len(valid)} | {told} |"


def _general(reason: str) -> str:
    """Without names of the schema's own."""
    return re.sub("'[^']*'", "…", reason).replace("|", r"\|").rstrip(".")


def _num_accepted(found: Iterable[Verdict]) -> int:
    return sum(verdict.is_accepted for verdict in found)


if __name__ == "__main__":
    DOCUMENT.write_text(render(verdicts()))
