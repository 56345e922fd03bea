"""What a JSON schema says of the values that it describes, as far as it says it plainly."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

Schema = Any
"""A JSON schema, or what a client gave for one."""

TYPE_OF = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}
_ANY = frozenset(TYPE_OF.values())
_CHOICES = ("anyOf", "oneOf", "allOf")
_MAX_STEPS = 32
"""From a schema to one within it or that it refers to, before it may be anything."""


def property_of(schema: Schema, key: str, root: Schema) -> Schema:
    """What an object's schema says of one of its values; True where it says nothing."""
    for each in _alternatives(schema, root):
        if isinstance(properties := each.get("properties"), Mapping) and key in properties:
            return properties[key]
        if isinstance(others := each.get("additionalProperties"), Mapping):
            return others
    return True


def items_of(schema: Schema, root: Schema) -> Schema:
    """What an array's schema says of its items; True where it says nothing."""
    return next((each["items"] for each in _alternatives(schema, root) if "items" in each), True)


def types_in(schema: Schema, root: Schema) -> frozenset[str]:
    """The types that a schema admits, as far as it is plain about them."""
    types = frozenset[str]()
    for each in _alternatives(schema, root):
        types |= _own_types(each)
    return types or _ANY


def _own_types(schema: Mapping[str, Any]) -> frozenset[str]:
    null = frozenset({"null"}) if schema.get("nullable") is True else frozenset[str]()
    given = schema.get("type")
    if isinstance(given, str):
        return null | {given}
    if isinstance(given, list):
        return null | _ANY.intersection(each for each in given if isinstance(each, str))
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list):
        return null | {TYPE_OF[type(value)] for value in values if type(value) in TYPE_OF}
    return _ANY


def _alternatives(schema: Schema, root: Schema) -> Iterable[Mapping[str, Any]]:
    """The schemas without references and choices, of which one or more hold where the schema does."""
    found: list[Mapping[str, Any]] = []
    left = [schema]
    for _ in range(_MAX_STEPS):
        if not left:
            break
        each = left.pop(0)
        if not isinstance(each, Mapping):
            found.append({})
        elif isinstance(reference := each.get("$ref"), str):
            left.append(_referred(reference, root))
        elif "type" not in each and (choices := [each[key] for key in _CHOICES if isinstance(each.get(key), list)]):
            left += chain(*choices)
        else:
            found.append(each)
    return [*found, *({} for _ in left)]


def _referred(reference: str, root: Schema) -> Schema:
    """What a JSON pointer in a reference leads to; True where it leads nowhere."""
    place = root
    for step in reference.removeprefix("#").split("/")[1:]:
        place = place.get(step.replace("~1", "/").replace("~0", "~"), True) if isinstance(place, Mapping) else True
    return place
