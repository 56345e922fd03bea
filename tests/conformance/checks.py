"""Which tests are checks of the contract, and of what."""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from conformance.fields import FIELDS
from conformance.rows import ROWS

MARKER = "conforms"
ALONE = "Each field by itself"
"""The section of checks that no report asked for."""

SECTIONS = (*dict.fromkeys(row.section for row in ROWS.values()), ALONE)


@dataclass(frozen=True, slots=True)
class Check:
    """A test function, as a line of the table.

    test: its name, unique in this folder. fields: of the contract. rows: numbers of the reports that it answers.
    """

    test: str
    fields: tuple[str, ...]
    rows: tuple[int, ...]

    @property
    def section(self) -> str:
        return ROWS[self.rows[0]].section if self.rows else ALONE

    @property
    def sentence(self) -> str:
        return self.test.removeprefix("test_").replace("_", " ")


def conforms(*fields: str, rows: tuple[int, ...] = ()) -> pytest.MarkDecorator:
    """Marks a test as a check of these fields, which answers these reports."""
    return pytest.mark.conforms(fields=fields, rows=rows)


def all_checks() -> list[Check]:
    """The checks of this folder, in the table's order: by section, then by report, then by field."""
    return sorted((check for module in _modules() for check in _checks_of(module)), key=_place)


def _place(check: Check) -> tuple[int, tuple[int, ...], int]:
    return SECTIONS.index(check.section), check.rows[:1], FIELDS.index(check.fields[0])


def _modules() -> Iterator[ModuleType]:
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        yield importlib.import_module(f"{__package__}.{path.stem}")


def _checks_of(module: ModuleType) -> Iterator[Check]:
    for name, value in vars(module).items():
        for mark in getattr(value, "pytestmark", ()):
            if name.startswith("test_") and mark.name == MARKER:
                yield Check(name, **mark.kwargs)
