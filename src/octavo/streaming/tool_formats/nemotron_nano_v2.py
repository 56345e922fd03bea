"""Nemotron Nano 2:

<TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Paris"}}]</TOOLCALL>
"""

from collections.abc import Sequence

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import ToolFormat, Tools, WrittenCall
from octavo.streaming.tool_formats.reader import Reader, Reading
from octavo.streaming.tool_formats.unmarked import read_several

START, END = "<TOOLCALL>", "</TOOLCALL>"


def read(reader: Reader, tools: Tools) -> Reading[Sequence[WrittenCall]]:
    yield from reader.literal(START)
    return (yield from read_several(reader, tools, END))


NEMOTRON_NANO_V2 = ToolFormat(
    name="nemotron-nano-v2",
    signs=(START,),
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
