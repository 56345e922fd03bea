"""Command R7B, and Cohere's later models:

<|START_ACTION|>[
    {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Paris"}}
]<|END_ACTION|>
"""

from collections.abc import Sequence

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import ToolFormat, Tools, WrittenCall
from octavo.streaming.tool_formats.reader import Reader, Reading
from octavo.streaming.tool_formats.unmarked import read_several

START, END = "<|START_ACTION|>", "<|END_ACTION|>"


def read(reader: Reader, tools: Tools) -> Reading[Sequence[WrittenCall]]:
    yield from reader.literal(START)
    return (yield from read_several(reader, tools, END))


COMMAND_R7B = ToolFormat(
    name="command-r7b",
    signs=(START,),
    starts=(START,),
    read=read,
    syntax=CallSyntax(
        opening=f"{START}[\n",
        begin='    {"tool_call_id": "0", "tool_name": "',
        middle='", "parameters": ',
        end="}",
        separator=",\n",
        closing=f"\n]{END}",
    ),
    markers=(END,),
)
