"""Findings of a test that looks at many things."""

from collections.abc import Iterable

MAX_SHOWN = 40


def check_none(findings: Iterable[str]) -> None:
    """Fails with what was found, one a line."""
    found = list(findings)
    assert not found, "\n".join((f"{len(found)} found:", *found[:MAX_SHOWN]))
