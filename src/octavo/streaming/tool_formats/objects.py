"""Calls that are JSON objects, in the spellings that models use."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from octavo.core.tools import Tool
from octavo.streaming.tool_formats.base import Tools, WrittenCall, call_of
from octavo.streaming.tool_formats.reader import NotACall

LIST = "tool_calls"
_NAMES = ("name", "tool_name", "function_name", "tool", "function")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "params")
_WRAPPERS = ("function", "function_call", "tool_call")
_TYPES = ("function", "function_call", "tool_call", "tool_use")
_BESIDE = ("type", "id", "call_id", "tool_call_id", "index")
FIRST_KEYS = frozenset((*_NAMES, *_ARGUMENTS, *_WRAPPERS, LIST, *_BESIDE))
"""With one of which a call begins, or a list of them."""

CallIn = Callable[[Mapping[str, Any], Tools], WrittenCall]
"""Gives the call that a JSON object describes. Raises NotACall where it describes none."""


def call_in(value: Mapping[str, Any], tools: Tools) -> WrittenCall:
    """The call of {"name", "arguments"}, also within a "function", or in synonyms of these, whatever else is there."""
    inner = _unwrapped(value)
    return call_of(_first_of(_NAMES, inner), _first_of(_ARGUMENTS, inner), tools)


def evident_call_in(value: Mapping[str, Any], tools: Tools) -> WrittenCall:
    """As call_in, where no marker says that the object is a call: so it must have arguments and nothing that no call
    has, and not describe a function."""
    inner = _unwrapped(value)
    keys = inner.keys() - _BESIDE
    if len(keys) != 2 or keys.isdisjoint(_ARGUMENTS) or (inner is not value and len(value.keys() - _BESIDE) != 1):
        raise NotACall
    call = call_in(value, tools)
    if _is_schema(_first_of(_ARGUMENTS, inner), tools[call.name]):
        raise NotACall
    return call


def may_be_in_call(key: str, value: Any, tools: Tools) -> bool:
    """Whether a call may have such a member."""
    if key == "type":
        return value in _TYPES
    return key not in _NAMES or isinstance(value, dict) or (isinstance(value, str) and value in tools)


def _unwrapped(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return next((inner for key in _WRAPPERS if isinstance(inner := value.get(key), dict)), value)


def _first_of(keys: Collection[str], value: Mapping[str, Any]) -> Any:
    return next((value[key] for key in keys if key in value), None)


def _is_schema(arguments: Any, tool: Tool) -> bool:
    if not arguments or not isinstance(arguments, dict):
        return False
    is_of_object = arguments.get("type") == "object" and isinstance(arguments.get("properties"), dict)
    return is_of_object or arguments == tool.parameters
