"""Schemas that are refused, and what the client is told."""

from typing import Any

import pytest
from prepared_language import language

from octavo.constraints.schema import prepared
from octavo.errors import UnsupportedGrammar


def nested(depth: int) -> Any:
    return {"items": nested(depth - 1)} if depth else {}


@pytest.mark.parametrize(
    ("schema", "start"),
    [
        (12, "$: a schema is"),
        ({"type": 12}, "$.type: must be a type"),
        ({"type": "text"}, "$.type: must be a type"),
        ({"properties": []}, "$.properties: must be an object"),
        ({"properties": {"a": 1}}, "$.properties.a: a schema is"),
        ({"properties": {"a b": {"minimum": "1"}}}, '$.properties["a b"].minimum: must be a number'),
        ({"anyOf": []}, "$.anyOf: must be a list of at least one schema"),
        ({"anyOf": [{}, {"required": [1]}]}, "$.anyOf[1].required: must be a list of names"),
        ({"minLength": -1}, "$.minLength: must be"),
        ({"multipleOf": 0}, "$.multipleOf: must be"),
        ({"maximum": 10**400}, "$.maximum: must be a number"),
        ({"maxItems": 10**400}, "$.maxItems: must be a whole number"),
        ({"enum": [10**400 + 1], "multipleOf": 10}, "$: allows no value"),
        ({"properties": {"a": {"pattern": "(?=a)"}}}, "$.properties.a.pattern: the regular expression"),
        ({"pattern": "("}, "$.pattern: the regular expression"),
        ({"$ref": "https://example.com/schema"}, "$.$ref: 'https://example.com/schema' is not in this schema"),
        ({"$ref": "#/$defs/a"}, "$.$ref: '#/$defs/a' refers to nothing"),
        ({"$ref": "#"}, "$: refers to itself"),
        ({"not": {"divisibleBy": 2}}, "$.not.divisibleBy: belongs to an old draft"),
        (False, "$: allows no value"),
        ({"type": "object", "required": ["a"], "properties": {"a": {"type": "null", "enum": [1]}}}, "$.properties.a: "),
        ({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}, "$: allows no value"),
        ({"allOf": [{"anyOf": [{"minLength": n}, {"minimum": n}]} for n in range(14)]}, "$: has too many alternatives"),
        (nested(40), "$" + ".items" * 33 + ": schemas may be nested 32 deep"),
    ],
)
def test_a_refusal_names_the_place(schema: object, start: str) -> None:
    with pytest.raises(UnsupportedGrammar) as refused:
        prepared(schema)
    assert refused.value.message.startswith(start)


def test_a_long_chain_of_references_is_refused() -> None:
    definitions = {f"a{n}": {"$ref": f"#/$defs/a{n + 1}", "minLength": 1} for n in range(2000)}
    with pytest.raises(UnsupportedGrammar, match="lead here for the same value"):
        prepared({"$ref": "#/$defs/a0", "$defs": {**definitions, "a2000": {}}})


@pytest.mark.parametrize("schema", [{}, True, {"properties": {}}, {"type": ["object", "null"]}])
def test_arguments_are_objects_whatever_else_the_schema_allows(schema: object) -> None:
    arguments = language(schema, must_be_object=True)
    assert b'{"a": 1}' in arguments
    assert b"null" not in arguments


def test_arguments_of_a_schema_without_objects_are_refused() -> None:
    with pytest.raises(UnsupportedGrammar, match="allows no value"):
        prepared({"type": "string"}, must_be_object=True)


@pytest.mark.parametrize("value", ["\ud800", float("nan"), float("inf")])
def test_what_no_json_text_holds_is_refused(value: Any) -> None:
    with pytest.raises(UnsupportedGrammar, match="NaN, an infinite number or half a surrogate pair"):
        prepared({"enum": [value]})
