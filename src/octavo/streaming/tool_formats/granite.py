"""Granite 3; later ones write as Hermes does:

<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]
<tool_call>[{"name": "get_weather", "arguments": {"city": "Paris"}}]</tool_call>
"""

from collections.abc import Sequence

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats import hermes
from octavo.streaming.tool_formats.base import ToolFormat, Tools, WrittenCall
from octavo.streaming.tool_formats.reader import Reader, Reading
from octavo.streaming.tool_formats.unmarked import read_several

START = "<|tool_call|>"
STARTS = (START, hermes.START)


def read(reader: Reader, tools: Tools) -> Reading[Sequence[WrittenCall]]:
    yield from reader.one_of(STARTS)
    return (yield from read_several(reader, tools, hermes.END))


GRANITE = ToolFormat(
    name="granite",
    signs=(START,),
    starts=STARTS,
    read=read,
    syntax=CallSyntax(
        opening=f"{START}[",
        begin='{"name": "',
        middle='", "arguments": ',
        end="}",
        separator=", ",
        closing="]",
    ),
    markers=(hermes.END,),
)
