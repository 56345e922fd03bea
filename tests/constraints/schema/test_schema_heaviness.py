"""Schemas whose grammars are large, or too large."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from octavo.constraints import answer_grammar, check_grammar, schema_part
from octavo.core.channels import PLAIN
from octavo.core.vocabulary import Vocabulary
from octavo.errors import UnsupportedGrammar
from support.json_schema_judge import problem, validator
from support.languages import Language
from support.listing import check_none
from support.random_json import random_texts

VOCABULARY = Vocabulary(
    pieces=(*(bytes([value]) for value in range(256)), b""),
    special_tokens=(),
    eog_tokens=frozenset({256}),
    bos_token=None,
    adds_bos=False,
)
TOO_HEAVY = {"patternProperties": {f"(a|b)*{code}(a|b){{12}}": {"type": "integer"} for code in "abxy"}}


def checked(schema: Any) -> Language:
    grammar = answer_grammar(schema_part(schema), PLAIN, VOCABULARY)
    check_grammar(grammar, VOCABULARY)
    return Language(grammar)


def test_patterns_that_are_too_heavy_together_are_refused() -> None:
    with pytest.raises(UnsupportedGrammar, match="too large or too complex"):
        checked(TOO_HEAVY)


@pytest.mark.parametrize("step", [0.123456789, 1e-8, 7.5, 123456789, 0.1])
def test_multiples_of_any_step_are_not_too_heavy(step: float) -> None:
    schema = {"type": "number", "multipleOf": step}
    texts = {text for _, text in random_texts(checked(schema), schema, str(step))}
    assert len(texts) > 1
    check_none(wrong for text in texts if (wrong := problem(text, validator(schema))))


def test_branches_with_a_discriminator_may_be_many() -> None:
    branches = [
        {"type": "object", "properties": {"kind": {"const": f"k{n}"}, f"p{n}": {}}, "required": ["kind"]}
        for n in range(60)
    ]
    allowed = checked({"oneOf": branches})
    assert b'{"kind": "k59", "p59": 1}' in allowed
    assert b'{"kind": "k60"}' not in allowed


@pytest.mark.parametrize("required", [[], [f"p{n}" for n in range(600)]])
def test_properties_may_be_many(required: Sequence[str]) -> None:
    properties = {f"p{n}": {"type": "null"} for n in range(600 + len(required))}
    allowed = checked({"properties": properties, "required": required, "additionalProperties": False})
    wanted = dict.fromkeys([*required, list(properties)[-1]])
    assert json.dumps(wanted).encode() in allowed
    assert json.dumps({**wanted, "p1200": None}).encode() not in allowed


def test_too_many_optional_properties_are_refused() -> None:
    with pytest.raises(UnsupportedGrammar, match="so many properties are not supported"):
        schema_part({"type": "object", "properties": {f"p{n}": {} for n in range(2001)}})
