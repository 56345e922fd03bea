"""Small schemas of any keywords, for hypothesis."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from support.json_schema_judge import FORMATS

TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
NAMES = st.sampled_from(("a", "b", "ab", "c d"))
PATTERNS = st.sampled_from(("^a", "b$", "^[ab]*$", "a|b", "^.{2}$", "[^a]", r"^\d+$", r"\s", r"^\S*$", r"^\w*$", r"\D"))
COUNTS = st.integers(0, 3)
LIMITS = st.integers(-3, 12) | st.sampled_from((0.5, -1.5, 2.0, 0.3, 1e-20))
SCALARS = LIMITS | st.sampled_from((None, True, False, "", "a", "b", "ab", "abc", "a\n", "\u00a0", "²"))
VALUES = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(NAMES, SCALARS, max_size=2)

PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
    "enum": st.lists(VALUES, min_size=1, max_size=4),
    "const": VALUES,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), LIMITS),
    "multipleOf": st.sampled_from((1, 2, 3, 0.5)),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), COUNTS),
    **dict.fromkeys(("minContains", "maxContains"), COUNTS),
    "pattern": PATTERNS,
    "format": st.sampled_from(sorted(FORMATS.checkers)),
    "uniqueItems": st.booleans(),
    "required": st.lists(NAMES, max_size=2, unique=True),
    "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=2, unique=True), max_size=2),
}
OF_SCHEMA = (
    *("not", "if", "then", "else", "items", "contains", "propertyNames", "additionalProperties"),
    *("unevaluatedItems", "unevaluatedProperties"),
)
OF_SCHEMAS = ("allOf", "anyOf", "oneOf", "prefixItems")


@st.composite
def schemas(draw: Callable[[st.SearchStrategy[Any]], Any], depth: int = 2) -> Any:
    """Of at most four keywords each, and of schemas in schemas `depth` deep."""
    if draw(st.integers(0, 11)) == 0:
        return draw(st.booleans())
    known = {**PLAIN, **(_nested(depth - 1) if depth else {})}
    names = draw(st.lists(st.sampled_from(list(known)), max_size=4, unique=True))
    return {name: draw(known[name]) for name in names}


def _nested(depth: int) -> dict[str, st.SearchStrategy[Any]]:
    inner = schemas(depth)
    return {
        **dict.fromkeys(OF_SCHEMA, inner),
        **dict.fromkeys(OF_SCHEMAS, st.lists(inner, min_size=1, max_size=3)),
        **dict.fromkeys(("properties", "dependentSchemas"), st.dictionaries(NAMES, inner, max_size=2)),
        "patternProperties": st.dictionaries(PATTERNS, inner, max_size=2),
    }
