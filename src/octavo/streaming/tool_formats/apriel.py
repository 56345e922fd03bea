"""Apriel 1.5 and 1.6:

<tool_calls>[{"name": "get_weather", "arguments": {"city": "Paris"}}]</tool_calls>
"""

from collections.abc import Sequence

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import ToolFormat, Tools, WrittenCall
from octavo.streaming.tool_formats.reader import Reader, Reading
from octavo.streaming.tool_formats.unmarked import read_several

START, END = "<tool_calls>", "</tool_calls>"


def read(reader: Reader, tools: Tools) -> Reading[Sequence[WrittenCall]]:
    yield from reader.literal(START)
    return (yield from read_several(reader, tools, END))


APRIEL = ToolFormat(
    name="apriel",
    signs=(f"{START}[",),
    starts=(START,),
    read=read,
    syntax=CallSyntax(
        opening=f"{START}[",
        begin='{"name": "',
        middle='", "arguments": ',
        end="}",
        separator=", ",
        closing=f"]{END}",
    ),
    markers=(END,),
)
