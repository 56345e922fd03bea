"""Calls in JSON or in Python, wherever they stand: what is none of them is told as early as it can be."""

import re
from collections.abc import Sequence

from octavo.streaming.tool_formats.base import Tools, WrittenCall
from octavo.streaming.tool_formats.objects import read_object
from octavo.streaming.tool_formats.pythonic import read_python_call
from octavo.streaming.tool_formats.reader import Reader, Reading

_BETWEEN = re.compile(r"[\s,;]*")


def read_unmarked(reader: Reader, tools: Tools) -> Reading[Sequence[WrittenCall]]:
    """The calls of one object, of one list, or one call in Python."""
    if (yield from reader.peek()) == "[":
        return (yield from _list(reader, tools))
    return (yield from _item(reader, tools))


def read_several(reader: Reader, tools: Tools, end: str) -> Reading[Sequence[WrittenCall]]:
    """Calls one after the other up to the end, which they may lack where the text ends with them."""
    calls: list[WrittenCall] = []
    yield from reader.space()
    while not calls or (yield from reader.peek()) not in ("", end[0]):
        calls += yield from read_unmarked(reader, tools)
        yield from reader.take(_BETWEEN)
    if (yield from reader.peek()):
        yield from reader.literal(end)
    return calls


def _list(reader: Reader, tools: Tools) -> Reading[Sequence[WrittenCall]]:
    calls: list[WrittenCall] = []
    yield from reader.literal("[")
    yield from reader.space()
    while not calls or (yield from reader.peek()) != "]":
        calls += yield from _item(reader, tools)
        yield from reader.take(_BETWEEN)
    yield from reader.literal("]")
    return calls


def _item(reader: Reader, tools: Tools) -> Reading[Sequence[WrittenCall]]:
    if (yield from reader.peek()) == "{":
        return (yield from read_object(reader, tools))
    return [(yield from read_python_call(reader, tools))]
