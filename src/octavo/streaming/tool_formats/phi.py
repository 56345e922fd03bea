"""Phi 4 mini:

<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]<|/tool_call|>
functools[{"name": "get_weather", "arguments": {"city": "Paris"}}]
"""

from collections.abc import Sequence

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats import firefunction
from octavo.streaming.tool_formats.base import ToolFormat, Tools, WrittenCall
from octavo.streaming.tool_formats.reader import Reader, Reading
from octavo.streaming.tool_formats.unmarked import read_several

START, END = "<|tool_call|>", "<|/tool_call|>"


def read(reader: Reader, tools: Tools) -> Reading[Sequence[WrittenCall]]:
    if (yield from reader.peek()) != START[0]:
        return (yield from firefunction.read(reader, tools))
    yield from reader.literal(START)
    return (yield from read_several(reader, tools, END))


PHI = ToolFormat(
    name="phi",
    signs=("<|/tool|>",),
    starts=(START, firefunction.START),
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
