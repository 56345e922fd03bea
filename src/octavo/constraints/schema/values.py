"""JSON values, compared as JSON schema compares them: 1 equals 1.0, and true equals no number."""

import json
import sys
from collections.abc import Hashable
from decimal import Decimal
from typing import Any

KINDS = ("object", "array", "string", "number", "boolean", "null")
_LARGEST = sys.float_info.max


def kind_of(value: Any) -> str:
    """The JSON type of a value; integers are numbers."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def key_of(value: Any) -> Hashable:
    """Equal for equal values, and for no others."""
    match value:
        case bool() | None | str():
            return type(value).__name__, value
        case int() | float():
            return "number", decimal(value)
        case list():
            return "array", tuple(map(key_of, value))
    return "object", frozenset((name, key_of(member)) for name, member in value.items())


def decimal(number: int | float) -> Decimal:
    """The number as it is written in JSON."""
    return Decimal(repr(number)).normalize() if isinstance(number, float) else Decimal(number)


def is_number(value: Any) -> bool:
    """One that is not beyond what readers of JSON take for infinite."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -_LARGEST <= value <= _LARGEST


def is_integer(value: Any) -> bool:
    return is_number(value) and value == int(value)


def spelled_value(value: Any) -> str:
    """The one text that a grammar has for a scalar."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).replace("\x7f", "\\u007f")
