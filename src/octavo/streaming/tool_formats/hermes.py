"""Hermes, Qwen 2.5 and 3, and most models without a format of their own:

<tool_call>
{"name": "get_weather", "arguments": {"city": "Paris"}}
</tool_call>

Small models write other tags, several calls between two tags, a start for the end, or a bracket too many.
"""

import re
from collections.abc import Sequence

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import ToolFormat, Tools, WrittenCall
from octavo.streaming.tool_formats.reader import Reader, Reading
from octavo.streaming.tool_formats.unmarked import read_unmarked

START, END = "<tool_call>", "</tool_call>"
_TAGS = ("tool_call", "tool_calls", "tools", "tool", "function_call", "functions", "response", "json")
STARTS = tuple(f"<{tag}>" for tag in _TAGS)
ENDS = tuple(f"</{tag}>" for tag in _TAGS)
_BETWEEN = re.compile(r"[\s,}]*")


def read(reader: Reader, tools: Tools) -> Reading[Sequence[WrittenCall]]:
    yield from reader.one_of(STARTS)
    yield from reader.space()
    calls = [*(yield from read_unmarked(reader, tools))]
    while (yield from _goes_on(reader)):
        calls += yield from read_unmarked(reader, tools)
    return calls


def _goes_on(reader: Reader) -> Reading[bool]:
    """Whether another call stands before the end, or behind a start that comes instead of it."""
    yield from reader.take(_BETWEEN)
    if (yield from reader.peek()) == "<":
        if (yield from reader.one_of((*STARTS, *ENDS))) in ENDS:
            return False
        yield from reader.space()
    return (yield from reader.peek()) in {"{", "["}


HERMES = ToolFormat(
    name="hermes",
    signs=(START, END, '"arguments"'),
    starts=STARTS,
    read=read,
    syntax=CallSyntax(begin=f'{START}\n{{"name": "', middle='", "arguments": ', end=f"}}\n{END}", separator="\n"),
    markers=ENDS,
)
