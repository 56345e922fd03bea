"""Firefunction 2:

functools[{"name": "get_weather", "arguments": {"city": "Paris"}}]
"""

from collections.abc import Sequence

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import ToolFormat, Tools, WrittenCall
from octavo.streaming.tool_formats.reader import Reader, Reading
from octavo.streaming.tool_formats.unmarked import read_unmarked

START = "functools"


def read(reader: Reader, tools: Tools) -> Reading[Sequence[WrittenCall]]:
    yield from reader.literal(START)
    yield from reader.space()
    return (yield from read_unmarked(reader, tools))


FIREFUNCTION = ToolFormat(
    name="firefunction",
    signs=(f"{START}[",),
    starts=(START,),
    read=read,
    syntax=CallSyntax(
        opening=f"{START}[",
        begin='{"name": "',
        middle='", "arguments": ',
        end="}",
        separator=", ",
        closing="]",
    ),
)
