"""What references lead to."""

from typing import Any

import pytest

from octavo.constraints.schema.references import Document
from octavo.errors import UnsupportedGrammar

DEFINITIONS = {
    "a/b~c": {"type": "null"},
    "percent%": {"type": "null"},
    "named": {"$anchor": "here"},
    "old": {"$id": "#there"},
    "inner": {"$id": "other.json", "$defs": {"x": {"$ref": "#/$defs/y"}, "y": {}}},
}


def target(reference: str, *path: str | int, **more: Any) -> tuple[str | int, ...]:
    return Document({"$ref": reference, "$defs": DEFINITIONS, **more}).target(path, "$ref")


@pytest.mark.parametrize(
    ("reference", "path"),
    [
        ("#", ()),
        ("#/$defs/a~1b~0c", ("$defs", "a/b~c")),
        ("#/$defs/percent%25", ("$defs", "percent%")),
        ("#here", ("$defs", "named")),
        ("#there", ("$defs", "old")),
        ("other.json", ("$defs", "inner")),
        ("other.json#/$defs/y", ("$defs", "inner", "$defs", "y")),
        ("#/anyOf/1", ("anyOf", 1)),
        ("#/x-shared/a", ("x-shared", "a")),
    ],
)
def test_a_reference_leads_to_a_place(reference: str, path: tuple[str | int, ...]) -> None:
    assert target(reference, anyOf=[{}, {}], **{"x-shared": {"a": {"type": "string"}}}) == path


def test_a_reference_is_relative_to_the_nearest_identity() -> None:
    assert target("#", "$defs", "inner", "$defs", "x") == ("$defs", "inner", "$defs", "y")


@pytest.mark.parametrize("reference", ["#/anyOf/2", "#/anyOf/01", "#/default", "#nowhere", "file:///etc/passwd"])
def test_nothing_else_is_found_or_fetched(reference: str) -> None:
    with pytest.raises(UnsupportedGrammar, match=r"^\$\.\$ref: "):
        target(reference, anyOf=[{}, {}], default=3)


def test_a_dynamic_reference_is_followed_where_all_values_agree() -> None:
    tree = {"$dynamicAnchor": "node", "items": {"$dynamicRef": "#node"}}
    assert Document(tree).target(("items",), "$dynamicRef") == ()


def test_a_dynamic_reference_is_refused_where_the_value_decides() -> None:
    anchors = {name: {"$id": name, "$dynamicAnchor": "t"} for name in ("a", "b")}
    document = Document({"$id": "http://example.com/root", "items": {"$dynamicRef": "a#t"}, "$defs": anchors})
    with pytest.raises(UnsupportedGrammar, match="depends on the value"):
        document.target(("items",), "$dynamicRef")
