"""Whether a schema is well-formed: each keyword that says something has a value of the right form."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from octavo.constraints.schema.paths import Path, unsupported
from octavo.constraints.schema.values import is_integer, is_number

MAX_DEPTH = 32
"""Of schemas in schemas."""

_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})


def check_schema(root: object) -> None:
    """Raises UnsupportedGrammar with the path of the first keyword that is malformed."""
    _check_text(root)
    pending: list[tuple[Path, object, int]] = [((), root, 0)]
    while pending:
        path, schema, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise unsupported(path, f"schemas may be nested {MAX_DEPTH} deep, this one is deeper.")
        if not isinstance(schema, Mapping | bool):
            raise unsupported(path, "a schema is an object, true or false.")
        if isinstance(schema, Mapping):
            _check_keywords(path, schema)
            pending += [(place, child, depth + 1) for place, child in subschemas(path, schema)]


def subschemas(path: Path, schema: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """The schemas directly in a well-formed one, each with its place."""
    for keyword, value in schema.items():
        place = (*path, keyword)
        if keyword in _SCHEMA or (keyword == "items" and not isinstance(value, list)):
            yield place, value
        elif keyword in _SCHEMAS or keyword == "items":
            yield from (((*place, index), child) for index, child in enumerate(value))
        elif keyword in _NAMED_SCHEMAS:
            yield from (((*place, name), child) for name, child in value.items() if not isinstance(child, list))


def _check_text(root: object) -> None:
    try:
        json.dumps(root, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as error:
        raise unsupported((), "holds NaN, an infinite number or half a surrogate pair.") from error


def _check_keywords(path: Path, schema: Mapping[str, Any]) -> None:
    for keyword, value in schema.items():
        if keyword in _REFUSED:
            raise unsupported((*path, keyword), "belongs to an old draft and is not supported.")
        form = _FORMS.get(keyword)
        if form is not None and not form.holds(value):
            raise unsupported((*path, keyword), f"must be {form.name}.")


class _Form:
    def __init__(self, name: str, holds: Callable[[Any], bool]) -> None:
        self.name = name
        self.holds = holds


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_names_of_names(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_is_names, value.values()))


def _is_type(value: Any) -> bool:
    types = value if isinstance(value, list) else [value]
    return bool(types) and all(isinstance(name, str) and name in _TYPES for name in types)


def _is_count(value: Any) -> bool:
    return is_integer(value) and value >= 0


_REFUSED = frozenset({"$recursiveRef", "extends", "disallow", "divisibleBy"})
"""What would be dropped otherwise: any other keyword that is not known is an annotation."""

_SCHEMA = frozenset(
    {"additionalItems", "additionalProperties", "contains", "propertyNames", "unevaluatedItems"}
    | {"unevaluatedProperties", "if", "then", "else", "not"}
)
_SCHEMAS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED_SCHEMAS = frozenset(
    {"$defs", "definitions", "properties", "patternProperties", "dependentSchemas", "dependencies"}
)

_TEXT = _Form("a string", lambda value: isinstance(value, str))
_COUNT = _Form("a whole number that is not negative", _is_count)
_LIST = _Form("a list", lambda value: isinstance(value, list))
_OBJECT = _Form("an object", lambda value: isinstance(value, Mapping))
_BOUND = _Form("a number", is_number)
_LIMIT = _Form("a number", lambda value: isinstance(value, bool) or is_number(value))
_FLAG = _Form("true or false", lambda value: isinstance(value, bool))

_FORMS: dict[str, _Form] = {
    **dict.fromkeys(("$ref", "$dynamicRef", "$anchor", "$dynamicAnchor", "$id", "pattern", "format"), _TEXT),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _COUNT),
    **dict.fromkeys(("minContains", "maxContains"), _COUNT),
    **dict.fromkeys(("minimum", "maximum"), _BOUND),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), _LIMIT),
    **dict.fromkeys(_NAMED_SCHEMAS, _OBJECT),
    **dict.fromkeys(
        _SCHEMAS, _Form("a list of at least one schema", lambda value: isinstance(value, list) and value != [])
    ),
    "enum": _LIST,
    "type": _Form(f"a type or a list of types: {', '.join(sorted(_TYPES))}", _is_type),
    "required": _Form("a list of names", _is_names),
    "multipleOf": _Form("a number above 0", lambda value: is_number(value) and value > 0),
    "dependentRequired": _Form("an object of lists of names", _is_names_of_names),
    "uniqueItems": _FLAG,
}
