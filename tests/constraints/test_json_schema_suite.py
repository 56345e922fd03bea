"""The JSON Schema Test Suite, draft 2020-12: what a grammar of ours lets through is valid under the client's schema."""

from collections.abc import Sequence

import pytest
from jsonschema.exceptions import ValidationError

from support.json_schema_judge import problem, validator
from support.json_schema_suite import suite_cases
from support.json_schema_verdicts import Verdict, verdicts
from support.listing import check_none
from support.packages import skipped_if_not_fetched
from support.random_json import random_texts

ROUNDS = 5
"""Texts in each mood, of which there are seven to nine."""
LEAST_ACCEPTED = 0.9
"""Of the schemas that every validator must know. What is reached; it may grow."""

UNJUDGED_FILES = ("optional/ecmascript-regex",)
"""Whose regular expressions Python's own module, by which `jsonschema` judges, reads otherwise or not at all."""
UNJUDGED_FORMATS = (
    # `jsonschema` judges them by libraries that are not installed, or looks at less than their instances ask for.
    "ecmascript-regex",
    "idn-email",
    "idn-hostname",
    "iri",
    "iri-reference",
    "json-pointer",
    "relative-json-pointer",
    "uri-reference",
    "uri-template",
)
UNDECIDED = ("a valid punycoded IDN hostname",)
"""Valid, but not by what is judged here: names with internationalized labels."""


@pytest.fixture(scope="module")
def all_verdicts() -> tuple[Verdict, ...]:
    with skipped_if_not_fetched():
        return verdicts()


@pytest.fixture(scope="module")
def accepted(all_verdicts: tuple[Verdict, ...]) -> list[Verdict]:
    return [verdict for verdict in all_verdicts if verdict.is_accepted]


def test_what_is_not_refused_is_a_grammar(all_verdicts: Sequence[Verdict]) -> None:
    check_none(f"{verdict.case.name}: {verdict.fault}" for verdict in all_verdicts if verdict.fault)


def test_a_refusal_names_the_path_of_what_cannot_be_kept_to(all_verdicts: Sequence[Verdict]) -> None:
    refused = [verdict for verdict in all_verdicts if verdict.refusal]
    check_none(f"{each.case.name}: {each.refusal}" for each in refused if not leads_somewhere(each))


def test_as_many_schemas_are_accepted_as_ever(all_verdicts: Sequence[Verdict]) -> None:
    required = [verdict for verdict in all_verdicts if verdict.case.is_required]
    share = sum(verdict.is_accepted for verdict in required) / len(required)
    assert share >= LEAST_ACCEPTED, f"{share:.3f}"


def test_what_is_written_at_random_under_an_accepted_schema_is_valid(accepted: Sequence[Verdict]) -> None:
    found = []
    for case, language in ((each.case, each.language) for each in accepted if each.case.file not in UNJUDGED_FILES):
        judge = validator(case.schema)
        assert language is not None
        texts = random_texts(language, case.schema, case.name, ROUNDS)
        found += [f"{case.name} ({mood.name}): {wrong}" for mood, text in texts if (wrong := problem(text, judge))]
    check_none(found)


def test_no_instance_that_the_suite_calls_invalid_can_be_written(accepted: Sequence[Verdict]) -> None:
    check_none(
        f"{verdict.case.name}: {instance.description}: {instance.data!r:.200}"
        for verdict in accepted
        for instance in verdict.writable
        if not instance.is_valid
    )


def leads_somewhere(verdict: Verdict) -> bool:
    place = verdict.case.schema
    for step in verdict.path or ():
        if not (step in place if isinstance(place, dict) else isinstance(step, int) and step < len(place)):
            return False
        place = place[step]
    return verdict.path is not None


def test_formats_are_judged_here_as_the_suite_judges_them() -> None:
    with skipped_if_not_fetched():
        cases = [case for case in suite_cases() if case.asserted_format not in (None, *UNJUDGED_FORMATS)]
    assert len(cases) >= 12
    for case in cases:
        judge = validator(case.schema)
        for instance in case.instances:
            if instance.description not in UNDECIDED:
                assert judge.is_valid(instance.data) is instance.is_valid, (case.name, instance.description)


def test_a_text_is_judged_by_its_value_and_its_characters() -> None:
    judge = validator({"type": "string", "minLength": 2})
    assert problem(b'"ab"', judge) == ""
    assert "too short" in problem(rb'"\ud83d\ude00"', judge)
    assert "is not JSON" in problem(rb'"ab\ud83d"', judge)
    assert "is not JSON" in problem(b'"ab\xff"', judge)
    assert "is not JSON" in problem(b"1e400", judge)
    assert "is not JSON" in problem(b"NaN", judge)
    with pytest.raises(ValidationError):
        judge.validate(1)
