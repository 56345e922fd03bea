"""Values that are written as text."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.streaming.tool_formats.typed_values import typed

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)
STRING, INTEGER, OBJECT = {"type": "string"}, {"type": "integer"}, {"type": "object"}
ROOT = {"$defs": {"Level": {"enum": ["1", "2"]}, "Loop": {"$ref": "#/$defs/Loop"}, "a/b": INTEGER}}


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("5", STRING, "5"),
        ("null", STRING, "null"),
        (' "a" ', STRING, ' "a" '),
        ("5", INTEGER, 5),
        (" 5\n", INTEGER, 5),
        ("five", INTEGER, "five"),
        ("", INTEGER, ""),
        ("5", {"type": "number"}, 5),
        ("True", {"type": "boolean"}, True),
        ("false", {"type": "boolean"}, False),
        ("5", {"type": ["string", "null"]}, "5"),
        ("null", {"type": ["string", "null"]}, None),
        ("None", {"type": "string", "nullable": True}, None),
        ("5", {"anyOf": [STRING, INTEGER]}, 5),
        ("[5]", {"anyOf": [STRING, INTEGER]}, "[5]"),
        ('"5"', {"oneOf": [STRING, OBJECT]}, '"5"'),
        ("1", {"enum": ["1", "2"]}, "1"),
        ("1", {"enum": [1, 2]}, 1),
        ("1", {"const": "1"}, "1"),
        ("1", {"$ref": "#/$defs/Level"}, "1"),
        ("1", {"anyOf": [{"$ref": "#/$defs/Level"}, {"type": "null"}]}, "1"),
        ("1", {"$ref": "#/$defs/a~1b"}, 1),
        ("1", {"$ref": "#/$defs/Loop"}, 1),
        ("1", {"$ref": "#/nowhere"}, 1),
        ("1", {"type": "string", "anyOf": [{"minLength": 1}]}, "1"),
        ("[1, 2", {}, "[1, 2"),
        ('"quoted"', {}, '"quoted"'),
        ("{'a': [True, None, \"it's\"]}", OBJECT, {"a": [True, None, "it's"]}),
        ("1", True, 1),
        ("1", {"type": 7, "anyOf": 3}, 1),
    ],
)
def test_the_schema_says_what_a_text_stands_for(text: str, schema: Any, value: Any) -> None:
    found = typed(text, schema, ROOT)
    assert (found, type(found)) == (value, type(value))


@given(VALUES)
def test_json_stands_for_itself_unless_it_is_a_string(value: Any) -> None:
    text = json.dumps(value)
    assert typed(text, {}, {}) == (text if isinstance(value, str) else value)


@given(VALUES.filter(lambda value: not isinstance(value, str)))
def test_python_that_says_what_json_can_say_stands_for_it(value: Any) -> None:
    if "\\U" not in repr(value):
        assert typed(repr(value), {}, {}) == value


@pytest.mark.parametrize("text", ["[" * 100_000, "'" * 100_001, "'\\'" * 50_000, "{'a':" * 50_000], ids=len)
def test_what_stands_for_nothing_is_a_string_however_long(text: str) -> None:
    assert typed(text, OBJECT, {}) == text
