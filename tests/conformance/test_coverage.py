"""Whether there is a check for everything, and what the table says of them."""

import pytest

from conformance.checks import SECTIONS, Check, all_checks
from conformance.fields import FIELDS, REQUEST_FIELDS, RESPONSE_FIELDS
from conformance.rows import ROWS
from conformance.table import FAILED, NOT_RUN, PASSED, render
from octavo.api.schemas.chat import ChatCompletionRequest
from octavo.api.schemas.completions import CompletionRequest


@pytest.fixture(scope="module")
def checks() -> list[Check]:
    return all_checks()


@pytest.mark.parametrize("field", [*REQUEST_FIELDS, *RESPONSE_FIELDS])
def test_every_field_has_a_check(checks: list[Check], field: str) -> None:
    assert any(field in check.fields for check in checks)


def test_every_field_of_the_servers_schemas_is_listed() -> None:
    known = {field.partition(".")[0] for field in REQUEST_FIELDS}
    assert known >= {*CompletionRequest.model_fields, *ChatCompletionRequest.model_fields}


@pytest.mark.parametrize("number", ROWS)
def test_every_report_has_a_check(checks: list[Check], number: int) -> None:
    assert any(number in check.rows for check in checks)


def test_checks_name_fields_of_the_contract_and_reports_that_exist(checks: list[Check]) -> None:
    assert {field for check in checks for field in check.fields} <= set(FIELDS)
    assert {number for check in checks for number in check.rows} <= set(ROWS)
    assert all(check.fields for check in checks)


def test_no_two_checks_have_one_name(checks: list[Check]) -> None:
    assert len({check.test for check in checks}) == len(checks)


def test_every_section_has_checks(checks: list[Check]) -> None:
    assert {check.section for check in checks} == set(SECTIONS)


def test_the_table_says_of_each_check_whether_it_passed() -> None:
    named = [Check("test_a_holds", ("stop", "n"), (1,)), Check("test_b_holds", ("n",), ()), Check("test_c", ("n",), ())]
    document = render(named, {"test_a_holds": FAILED, "test_b_holds": PASSED})
    a, b, c = [line.split(" | ") for line in document.splitlines() if line.startswith("| `")]
    assert a == ["| `stop`, `n`", "a holds", ROWS[1].text, f"{FAILED} |"]
    assert b == ["| `n`", "b holds", "", f"{PASSED} |"]
    assert c[-1] == f"{NOT_RUN} |"
    assert "3 checks, 2 not passed." in document
    assert "3 checks, all passed." in render(named, dict.fromkeys((check.test for check in named), PASSED))
