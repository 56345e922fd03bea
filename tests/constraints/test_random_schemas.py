"""Any schema is refused, or all that can be written under it is valid."""

from typing import Any

from hypothesis import HealthCheck, event, given, settings

from octavo.errors import UnsupportedGrammar
from support.json_schema_judge import problem, validator
from support.json_spellings import spellings
from support.languages import Language
from support.listing import check_none
from support.random_json import random_texts
from support.random_schemas import VALUES, schemas


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(schemas())
def test_what_is_written_under_any_schema_is_valid(schema: Any) -> None:
    try:
        language = Language.of_schema(schema)
    except UnsupportedGrammar:
        event("refused")
        return
    judge = validator(schema)
    check_none(
        f"{mood.name}: {wrong}" for mood, text in random_texts(language, schema, "") if (wrong := problem(text, judge))
    )


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(schemas(), VALUES)
def test_no_value_that_is_invalid_under_a_schema_can_be_written(schema: Any, value: Any) -> None:
    if validator(schema).is_valid(value):
        event("valid")
        return
    try:
        language = Language.of_schema(schema)
    except UnsupportedGrammar:
        event("refused")
        return
    check_none(name for name, text in spellings(value).items() if text in language)
