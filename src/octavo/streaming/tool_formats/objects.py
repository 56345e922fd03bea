"""Calls that are JSON objects, in the spellings that models use."""

from collections.abc import Sequence
from typing import Any

from octavo.streaming.tool_formats.base import Tools, WrittenCall, call_of
from octavo.streaming.tool_formats.reader import NotACall, Reader, Reading

_NAMES = ("name", "tool_name", "function_name", "tool", "function")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "params")
_WRAPPERS = ("function", "function_call", "tool_call")
_LIST = "tool_calls"
_TYPES = ("function", "function_call", "tool_call", "tool_use")
_FIRST_KEYS = frozenset((*_NAMES, *_ARGUMENTS, *_WRAPPERS, _LIST, "type", "id", "call_id", "tool_call_id"))


def call_in(value: Any, tools: Tools) -> WrittenCall:
    """The call that a JSON value describes: {"name", "arguments"}, also within a "function", or in synonyms of these.

    Raises NotACall where it describes none.
    """
    if not isinstance(value, dict):
        raise NotACall
    value = next((inner for key in _WRAPPERS if isinstance(inner := value.get(key), dict)), value)
    name = next((value[key] for key in _NAMES if key in value), None)
    return call_of(name, next((value[key] for key in _ARGUMENTS if key in value), None), tools)


def calls_in(value: Any, tools: Tools) -> Sequence[WrittenCall]:
    """As call_in, also for a list of calls, which has at least one, and for {"tool_calls": such a list}."""
    if isinstance(value, dict) and _LIST in value:
        value = value[_LIST]
    values = value if isinstance(value, list) else [value]
    if not values:
        raise NotACall
    return [call_in(each, tools) for each in values]


def read_object(reader: Reader, tools: Tools) -> Reading[Sequence[WrittenCall]]:
    """The calls of the object that follows; what cannot be one is told by its first key or by its name."""
    members: dict[str, Any] = {}
    yield from reader.literal("{")
    yield from reader.space()
    while (yield from reader.peek()) == '"':
        key = yield from reader.json()
        if not members and key not in _FIRST_KEYS:
            raise NotACall
        yield from reader.space()
        yield from reader.literal(":")
        yield from reader.space()
        members[key] = yield from reader.json()
        if not _may_be_call(key, members[key], tools):
            raise NotACall
        yield from reader.space()
        yield from reader.optional(",")
        yield from reader.space()
    yield from reader.literal("}")
    return calls_in(members, tools)


def _may_be_call(key: str, value: Any, tools: Tools) -> bool:
    if key == "type":
        return value in _TYPES
    return key not in _NAMES or isinstance(value, dict) or (isinstance(value, str) and value in tools)
