"""How a value may be laid out: compact, with blanks, indented; never with endless white space or digits."""

import json

import pytest
from prepared_language import language

from octavo.constraints.schema import prepared

VALUE = {"a": 1, "b": [1, {"c": []}]}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(VALUE, separators=(",", ":")),
        json.dumps(VALUE),
        json.dumps(VALUE, indent=2),
        json.dumps(VALUE, indent=4),
        json.dumps(VALUE, indent="\t"),
    ],
)
def test_the_usual_layouts_are_possible(text: str) -> None:
    assert text.encode() in language({})


@pytest.mark.parametrize("text", ["{  \n}", "[\n\n\n]", '{"a":  1}', '{"a" : 1}', "[1,  2]", " 1", "1 ", "[\n\n1]"])
def test_white_space_does_not_go_on(text: str) -> None:
    assert text.encode() not in language({})


@pytest.mark.parametrize("text", ["1" * 16, "0." + "1" * 16, "1e100", "01", "+1", ".5", "1."])
@pytest.mark.parametrize("schema", [{}, True, {"type": "number"}])
def test_digits_do_not_go_on(text: str, schema: object) -> None:
    assert text.encode() not in language(schema)


@pytest.mark.parametrize("text", [rb'{"\u0061":1}', rb'{"a\tb":1}', b'{"a\x7f":1}'])
def test_names_that_a_schema_does_not_name_have_no_escapes(text: bytes) -> None:
    assert text not in language({"properties": {"a": {"type": "null"}}})


def test_the_same_schema_has_the_same_grammar() -> None:
    schema = {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"$ref": "#"}]}}}
    assert prepared(schema) == prepared(schema)
