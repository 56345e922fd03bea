"""The committed table; `make conformance` writes it anew and leaves this out."""

from pathlib import Path

from conformance.checks import all_checks
from conformance.table import listing, render

DOCUMENT = Path(__file__).parents[2] / "docs" / "conformance.md"


def test_the_document_lists_exactly_the_checks_that_there_are() -> None:
    assert listing(DOCUMENT.read_text()) == listing(render(all_checks(), {})), "run `make conformance`"
