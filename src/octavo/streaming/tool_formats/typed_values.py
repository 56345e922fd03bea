"""Values that are written as text, without quotes: what they are is said by a schema."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from octavo.streaming.tool_formats.parameter_schemas import TYPE_OF, Schema, types_in
from octavo.streaming.tool_formats.python_values import value_of
from octavo.streaming.tool_formats.reader import NotACall, Reader, Reading

T = TypeVar("T")


def typed(text: str, schema: Schema, root: Schema) -> Any:
    """The value that a text stands for, of a type that the schema admits where there is one.

    A text for which nothing but a string is admitted is that string, and so is one that stands for nothing else.
    root: the schema in which references are looked up.
    """
    types = types_in(schema, root)
    if types == {"string"}:
        return text
    try:
        value = value_in(text)
    except NotACall:
        return text
    is_admitted = TYPE_OF[type(value)] in types or (type(value) is int and "number" in types)
    return text if "string" in types and (isinstance(value, str) or not is_admitted) else value


def value_in(text: str) -> Any:
    """The value that a text is in JSON, or in Python, as templates write it that know of no other way.

    Raises NotACall where it is none.
    """
    text = text.strip()
    try:
        return _whole(text, Reader.json)
    except NotACall:
        return value_of(_whole(text, Reader.python))


def _whole(text: str, read: Callable[[Reader], Reading[T]]) -> T:
    """What is read of a text, of which nothing may be left."""
    reader = Reader()
    reader.feed(text)
    reader.end()
    try:
        next(read(reader))
    except StopIteration as done:
        if not reader.rest:
            return cast(T, done.value)
    raise NotACall
