"""LFM2 and LFM2.5, in Python, or in JSON where the system prompt asks for it:

<|tool_call_start|>[get_weather(city="Paris"), now()]<|tool_call_end|>
<|tool_call_start|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]<|tool_call_end|>
"""

from collections.abc import Sequence

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import ToolFormat, Tools, WrittenCall
from octavo.streaming.tool_formats.reader import Reader, Reading
from octavo.streaming.tool_formats.unmarked import read_several

START, END = "<|tool_call_start|>", "<|tool_call_end|>"


def read(reader: Reader, tools: Tools) -> Reading[Sequence[WrittenCall]]:
    yield from reader.literal(START)
    return (yield from read_several(reader, tools, END))


LFM2 = ToolFormat(
    name="lfm2",
    signs=("List of tools: ",),
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
