"""Hermes, Qwen 2.5 and 3, and most models without a format of their own:

<tool_call>
{"name": "get_weather", "arguments": {"city": "Paris"}}
</tool_call>

Small models write other tags, several calls between two tags, a start for the end, or a bracket too many.
"""

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import CallReading, ToolFormat, Tools
from octavo.streaming.tool_formats.reader import Reader
from octavo.streaming.tool_formats.unmarked import read_several

START, END = "<tool_call>", "</tool_call>"
_TAGS = ("tool_call", "tool_calls", "tools", "tool", "function_call", "functions", "response", "json")
STARTS = tuple(f"<{tag}>" for tag in _TAGS)
ENDS = tuple(f"</{tag}>" for tag in _TAGS)


def read(reader: Reader, tools: Tools) -> CallReading:
    yield from reader.one_of(STARTS)
    yield from read_several(reader, tools, ENDS, starts=STARTS)


HERMES = ToolFormat(
    name="hermes",
    signs=(START, END, '"arguments"'),
    starts=STARTS,
    read=read,
    syntax=CallSyntax(begin=f'{START}\n{{"name": "', middle='", "arguments": ', end=f"}}\n{END}", separator="\n"),
    markers=ENDS,
)
