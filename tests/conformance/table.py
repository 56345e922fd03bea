"""The table of checks, in Markdown."""

from collections.abc import Iterable, Mapping
from itertools import groupby

from conformance.checks import Check
from conformance.rows import ROWS

PASSED = "pass"
FAILED = "FAIL"
NOT_RUN = "not run"

INTRODUCTION = """\
# Conformance

What each field of the API must mean, what other servers were reported to do, and whether Octavo does what it must.

This file is written by `make conformance`, which runs `tests/conformance/`; do not edit it. Each line is one test
there, named by what must hold. **Others** are rows of `tests/conformance/rows.py`: public bug reports about the same
field of other servers, each with its link. They say what was reported, not how those servers are today. A line without
one is there because the API has the field.
"""


def render(checks: Iterable[Check], results: Mapping[str, str]) -> str:
    """The whole document. results: by the name of the test; a check without one was not run."""
    checks = list(checks)
    parts = [INTRODUCTION, count(checks, results) + "\n"]
    for section, group in groupby(checks, lambda check: check.section):
        lines = [_line(check, results.get(check.test, NOT_RUN)) for check in group]
        parts.append("\n".join((f"## {section}\n", HEADER, *lines)) + "\n")
    return "\n".join(parts)


HEADER = "| field | what is checked | others | result |\n|---|---|---|---|"


def count(checks: Iterable[Check], results: Mapping[str, str]) -> str:
    """How many there are, and how many did not pass."""
    found = [results.get(check.test, NOT_RUN) for check in checks]
    num_others = len(found) - found.count(PASSED)
    return f"{len(found)} checks, all passed." if not num_others else f"{len(found)} checks, {num_others} not passed."


def _line(check: Check, result: str) -> str:
    fields = ", ".join(f"`{field}`" for field in check.fields)
    others = "; ".join(ROWS[number].text for number in check.rows)
    return f"| {fields} | {check.sentence} | {others} | {result} |"


def listing(document: str) -> list[str]:
    """The document's lines without the results."""
    return [line.rpartition(" | ")[0] for line in document.splitlines() if line.startswith("|")]
