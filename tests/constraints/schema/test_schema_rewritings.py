"""What a schema's grammar allows, and what it does not."""

from typing import Any

import pytest
from prepared_language import allows

OBJECT = {"type": "object"}
LETTERS = {"enum": ["a", "b", "c"]}

CASES: list[tuple[str, Any, list[Any], list[Any]]] = [
    ("anything", {}, [None, 1.5, "a", [], {"a": [{}]}], []),
    ("a tuple of types", {"type": ["string", "null"]}, ["a", None], [1, {}]),
    ("whole numbers", {"type": "integer"}, [0, -12], [1.5, 10**16]),
    ("constants of all kinds", {"enum": [1, "a", None, {"a": [1]}]}, [1, "a", None, {"a": [1]}], [2, {"a": [2]}, {}]),
    ("an enum with a pattern", {"enum": ["ab", "b"], "pattern": "^a"}, ["ab"], ["b"]),
    (
        "oneOf with a discriminator",
        {
            "oneOf": [
                {"type": "object", "properties": {"k": {"const": kind}, kind: {"type": "integer"}}, "required": ["k"]}
                for kind in ("x", "y")
            ]
        },
        [{"k": "x", "x": 1}, {"k": "y", "y": 1}],
        [{"k": "x", "x": "a"}, {"k": "z"}],
    ),
    ("oneOf that overlaps", {"oneOf": [{"type": "integer"}, {"minimum": 2}]}, [1, 2.5, "a"], [3, 1.5]),
    ("not a type", {"not": {"type": ["string", "object"]}}, [1, [], None], ["a", {}]),
    ("not a constant", {"type": "string", "not": {"const": "ab"}}, ["a", "abc", ""], ["ab"]),
    ("not a range", {"not": {"minimum": 3}}, [2], [3, 4, "a"]),
    ("not required", {**OBJECT, "not": {"required": ["a"]}}, [{}, {"b": 1}], [{"a": 1}]),
    (
        "if, then and else",
        {
            **OBJECT,
            "if": {"properties": {"t": {"const": "a"}}, "required": ["t"]},
            "then": {"required": ["x"]},
            "else": {"required": ["y"]},
        },
        [{"t": "a", "x": 1}, {"y": 1}],
        [{"t": "a", "y": 1}, {}],
    ),
    ("dependentRequired", {**OBJECT, "dependentRequired": {"a": ["b"]}}, [{}, {"a": 1, "b": 1}, {"b": 1}], [{"a": 1}]),
    ("dependencies of old drafts", {**OBJECT, "dependencies": {"a": ["b"]}}, [{"b": 1}], [{"a": 1}]),
    ("propertyNames", {**OBJECT, "propertyNames": {"pattern": "^[a-z]+$"}}, [{"ab": 1}], [{"A": 1}, {"": 1}]),
    (
        "patterns beside names",
        {
            **OBJECT,
            "properties": {"xa": {"minimum": 3}},
            "additionalProperties": False,
            "patternProperties": {"^x": {"type": "integer"}, "y$": {"maximum": 9}},
        },
        [{"xa": 3, "x": 11, "xy": 9}, {"y": "a"}],
        [{"xa": 2}, {"x": "a"}, {"xy": 10}, {"z": 1}],
    ),
    (
        "a named property by another spelling",
        {"properties": {"a": {"type": "null"}}, "additionalProperties": True},
        [{"a": None, "b": 1}],
        [{"a": 1}],
    ),
    (
        "numbers of properties",
        {
            **OBJECT,
            "minProperties": 1,
            "maxProperties": 2,
            "properties": {"a": {}, "b": {}},
            "additionalProperties": {},
        },
        [{"a": 1}, {"b": 1, "c": 1}],
        [{}, {"a": 1, "b": 1, "c": 1}],
    ),
    (
        "contains",
        {"type": "array", "contains": {"const": 5}, "items": {"type": "integer"}, "maxContains": 2},
        [[1, 5], [5, 1, 5]],
        [[], [1], [5, 5, 5]],
    ),
    ("maxContains below minContains", {"contains": {}, "minContains": 2, "maxContains": 1}, [1], [[], [1], [1, 1]]),
    ("maxContains below what minContains is", {"contains": {"const": 1}, "maxContains": 0}, [{}], [[], [1], [2]]),
    ("maxContains of none", {"contains": {"const": 1}, "minContains": 0, "maxContains": 0}, [[], [2]], [[1], [2, 1]]),
    (
        "not what no array is",
        {"type": "array", "not": {"contains": {"const": 1}, "maxContains": 0}},
        [[], [1], [2, 2]],
        [1],
    ),
    (
        "different items of few",
        {"type": "array", "items": LETTERS, "uniqueItems": True},
        [[], ["c", "a"], ["a", "b", "c"]],
        [["a", "a"], ["a", "b", "a"]],
    ),
    (
        "different strings",
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        [["python", "java", "rust"]],
        [["a", "a"], ["java", "java"]],
    ),
    (
        "different numbers",
        {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
        [[1, 20, -3]],
        [[1, 1], [0, 0]],
    ),
    (
        "different strings of few and of many",
        {
            "type": "array",
            "items": {"anyOf": [{"enum": ["a", "b"]}, {"type": "string", "minLength": 5}]},
            "uniqueItems": True,
        },
        [["a", "python"]],
        [["a", "a"], ["python", "python"]],
    ),
    (
        "different numbers of few and of many",
        {
            "type": "array",
            "items": {"anyOf": [{"enum": [1, 2]}, {"type": "integer", "minimum": 100}]},
            "uniqueItems": True,
        },
        [[1, 200]],
        [[1, 1], [200, 200]],
    ),
    (
        "a tuple",
        {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False},
        [[], [1], [1, "a"]],
        [["a"], [1, "a", 2]],
    ),
    (
        "a tuple of old drafts",
        {"type": "array", "items": [{"type": "integer"}], "additionalItems": {"type": "null"}},
        [[1, None]],
        [[1, 1]],
    ),
    (
        "unevaluatedProperties",
        {
            **OBJECT,
            "allOf": [{"properties": {"a": {}}}],
            "anyOf": [{"required": ["b"], "properties": {"b": {}}}, {"required": ["c"], "properties": {"c": {}}}],
            "unevaluatedProperties": False,
        },
        [{"a": 1, "b": 1}, {"c": 1}],
        [{"b": 1, "d": 1}, {"a": 1}],
    ),
    (
        "unevaluatedItems",
        {"type": "array", "allOf": [{"prefixItems": [True]}], "unevaluatedItems": {"type": "null"}},
        [[1, None]],
        [[1, 1]],
    ),
    (
        "siblings of a reference",
        {"$defs": {"s": {"type": "string"}}, "$ref": "#/$defs/s", "maxLength": 1},
        ["a"],
        ["ab"],
    ),
    (
        "recursion",
        {"type": "object", "properties": {"n": {"$ref": "#"}}, "additionalProperties": False},
        [{}, {"n": {"n": {}}}],
        [{"n": 1}],
    ),
    ("lengths in code points", {"type": "string", "minLength": 2, "maxLength": 2}, ["😀é", '"\n'], ["😀", "abc"]),
    ("exclusive bounds", {"type": "number", "exclusiveMinimum": 0.1, "exclusiveMaximum": 0.3}, [0.2, 0.11], [0.1, 0.3]),
    ("bounds with flags", {"type": "integer", "minimum": 1, "exclusiveMinimum": True}, [2], [1]),
    ("large whole bounds", {"type": "integer", "minimum": 9007199254740993}, [9007199254740993], [9007199254740992]),
    ("multiples", {"type": "number", "multipleOf": 0.5}, [0.5, -2.5, 3], [0.3]),
    ("multiples between bounds", {"type": "integer", "multipleOf": 7, "minimum": -7}, [-7, 0, 70], [-14, 8]),
    ("dates", {"type": "string", "format": "date"}, ["2024-12-31"], ["2023-02-29", "2024-13-01"]),
    ("unknown formats", {"type": "string", "format": "colour"}, ["red"], [1]),
    ("what OpenAPI adds", {"type": "string", "nullable": True}, ["a"], [None]),
]


@pytest.mark.parametrize(("schema", "good", "bad"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_grammar_allows_what_its_schema_allows(schema: Any, good: list[Any], bad: list[Any]) -> None:
    assert [value for value in good if not allows(schema, value)] == []
    assert [value for value in bad if allows(schema, value)] == []


@pytest.mark.parametrize(
    ("schema", "may_have_more"),
    [
        ({"properties": {"a": {}}}, False),
        ({"properties": {"a": {}}, "additionalProperties": True}, True),
        ({"properties": {"a": {}}, "patternProperties": {"^b": {}}}, True),
        ({"properties": {"a": {}}, "unevaluatedProperties": {"type": "integer"}}, True),
        ({"type": "object"}, True),
        ({"type": "object", "minProperties": 1}, True),
    ],
)
def test_members_that_no_schema_speaks_of_are_not_invented(schema: dict[str, Any], may_have_more: bool) -> None:
    assert allows({**OBJECT, **schema}, {"b": 1}) is may_have_more
    assert allows({**OBJECT, **schema}, {}) is ("minProperties" not in schema)
