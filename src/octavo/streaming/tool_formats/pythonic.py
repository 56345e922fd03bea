"""Calls as Python writes them, with values by name alone: get_weather(city="Paris", days=3)"""

from typing import Any

from octavo.streaming.tool_formats.base import CallReading, Tools, call_of
from octavo.streaming.tool_formats.names import read_name
from octavo.streaming.tool_formats.python_values import value_of
from octavo.streaming.tool_formats.reader import NotACall, Reader, Reading


def read_python_call(reader: Reader, tools: Tools) -> CallReading:
    """Also name.call(…), as Llama writes calls of the tools that it brings itself."""
    name = yield from read_name(reader)
    if name not in tools:
        name = name.removesuffix(".call")
    if name not in tools:
        raise NotACall
    yield call_of(name, (yield from _arguments(reader)), tools)


def _arguments(reader: Reader) -> Reading[dict[str, Any]]:
    arguments = {}
    yield from reader.literal("(")
    yield from reader.space()
    while (yield from reader.peek()) != ")":
        if not (key := (yield from read_name(reader))):
            raise NotACall
        yield from reader.literal("=")
        yield from reader.space()
        arguments[key] = value_of((yield from reader.python()))
        yield from reader.space()
        yield from reader.optional(",")
        yield from reader.space()
    yield from reader.literal(")")
    return arguments
