"""Schemas that people send: all are accepted, and what is written under them is valid."""

import random
import re
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from octavo.errors import UnsupportedGrammar
from support.agent_schemas import MCP, OPENAI
from support.bfcl import bfcl_cases, bfcl_schemas
from support.json_schema_judge import problem, validator
from support.languages import Language
from support.listing import check_none
from support.packages import skipped_if_not_fetched
from support.pydantic_models import MODELS
from support.random_json import random_texts

BFCL_SAMPLE = 250
"""Of BFCL's schemas, those that are looked at closely."""
CONTRADICTORY = {"get_response #497", "Events_3_BuyEventTickets #1802", "extract_parameters_v1 #1833"}
"""Those of BFCL's that no object is valid under: they require an integer that is a string, or an array that is one."""
LESS_THAN_MODEL = {"Dates", "Kinds", "Price", "Containers"}
"""Models whose schema says less than they ask for: of decimal numbers, of keys that are numbers, of long durations."""


@pytest.fixture(scope="module")
def bfcl() -> Mapping[str, Any]:
    with skipped_if_not_fetched():
        return bfcl_schemas()


@pytest.fixture(scope="module")
def bfcl_languages(bfcl: Mapping[str, Any]) -> Mapping[str, Language | str]:
    """Why there is none, where there is none."""
    return {name: language_of(schema) for name, schema in bfcl.items()}


def language_of(schema: Any) -> Language | str:
    try:
        return Language.of_schema(schema)
    except (UnsupportedGrammar, ValueError) as error:
        return str(error)


def invalid_texts(name: str, schema: Any, rounds: int = 1) -> Iterable[str]:
    """What is wrong with the schema's language."""
    language = language_of(schema)
    if isinstance(language, str):
        yield f"{name}: {language}"
        return
    judge = validator(schema)
    for mood, text in random_texts(language, schema, name, rounds):
        if wrong := problem(text, judge):
            yield f"{name} ({mood.name}): {wrong}"


def unreadable_texts(name: str, rounds: int) -> Iterable[str]:
    """What a model of pydantic does not read, though it is written under the model's schema."""
    model = MODELS[name]
    schema = model.json_schema()
    for _, text in random_texts(Language.of_schema(schema), schema, name, rounds):
        try:
            model.validate_json(text)
        except ValidationError as error:
            yield f"{text[:300]!r}: {error.errors(include_url=False)[:2]}"


def test_the_functions_of_bfcl_are_tools_as_openai_has_them() -> None:
    with skipped_if_not_fetched():
        cases = bfcl_cases()
    for case in cases:
        assert case.messages
        assert 1 <= len(case.names) == len(case.tools)
        assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", name) for name in case.names)
        assert all(name in case.names.values() for call in case.ground_truth or () for name in call)


def test_the_parameters_of_bfcl_are_schemas(bfcl: Mapping[str, Any]) -> None:
    for name in random.Random(2).sample(sorted(bfcl), BFCL_SAMPLE):
        Draft202012Validator.check_schema(bfcl[name])


def test_the_parameters_of_every_function_of_bfcl_are_accepted(bfcl_languages: Mapping[str, Language | str]) -> None:
    assert len(bfcl_languages) > 3000
    refused = {name: found for name, found in bfcl_languages.items() if isinstance(found, str)}
    check_none(f"{name}: {found}" for name, found in refused.items() if name not in CONTRADICTORY)
    assert refused.keys() == CONTRADICTORY


def test_what_is_written_under_the_parameters_of_bfcl_is_valid(bfcl: Mapping[str, Any]) -> None:
    names = random.Random(1).sample(sorted(bfcl.keys() - CONTRADICTORY), BFCL_SAMPLE)
    check_none(found for name in names for found in invalid_texts(name, bfcl[name]))


@pytest.mark.parametrize("name", OPENAI)
def test_what_openai_documents_is_accepted_and_kept_to(name: str) -> None:
    check_none(invalid_texts(name, OPENAI[name], rounds=3))


@pytest.mark.parametrize("name", MCP)
def test_what_agents_tools_ask_for_is_accepted_and_kept_to(name: str) -> None:
    check_none(invalid_texts(name, MCP[name], rounds=3))


@pytest.mark.parametrize("name", MODELS)
def test_the_schema_of_a_pydantic_model_is_accepted_and_kept_to(name: str) -> None:
    check_none(invalid_texts(name, MODELS[name].json_schema(), rounds=3))


@pytest.mark.parametrize("name", sorted(MODELS.keys() - LESS_THAN_MODEL))
def test_what_is_written_under_its_schema_can_be_read_by_a_pydantic_model(name: str) -> None:
    check_none(unreadable_texts(name, rounds=2))
