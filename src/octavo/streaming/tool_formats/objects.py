"""Calls that are JSON objects, in the spellings that models use."""

from collections.abc import Sequence
from typing import Any

from octavo.streaming.tool_formats.base import Tools, WrittenCall, call_of
from octavo.streaming.tool_formats.reader import NotACall

_NAMES = ("name", "tool_name", "function_name", "tool", "function")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "params")


def call_in(value: Any, tools: Tools) -> WrittenCall:
    """The call that a JSON value describes: {"name", "arguments"}, also within a "function", or in synonyms of these.

    Raises NotACall where it describes none.
    """
    if isinstance(value, dict) and isinstance(inner := value.get("function"), dict):
        value = inner
    if not isinstance(value, dict):
        raise NotACall
    name = next((value[key] for key in _NAMES if key in value), None)
    return call_of(name, next((value[key] for key in _ARGUMENTS if key in value), None), tools)


def calls_in(value: Any, tools: Tools) -> Sequence[WrittenCall]:
    """As call_in, also for a list of calls, which has at least one."""
    values = value if isinstance(value, list) else [value]
    if not values:
        raise NotACall
    return [call_in(each, tools) for each in values]
