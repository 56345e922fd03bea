"""The committed table; `make json-schema` writes it anew."""

from support.json_schema_table import DOCUMENT, render
from support.json_schema_verdicts import verdicts
from support.packages import skipped_if_not_fetched


def test_the_document_tells_what_becomes_of_the_suite_s_schemas() -> None:
    with skipped_if_not_fetched():
        found = verdicts()
    assert DOCUMENT.read_text() == render(found), "run `make json-schema`"
