"""Apertus:

<|tools_prefix|>[{"get_weather": {"city": "Paris"}}]<|tools_suffix|>
"""

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import CallReading, ToolFormat, Tools, call_of
from octavo.streaming.tool_formats.reader import Reader
from octavo.streaming.tool_formats.unmarked import read_key, read_list

START, END = "<|tools_prefix|>", "<|tools_suffix|>"


def read(reader: Reader, tools: Tools) -> CallReading:
    yield from reader.literal(START)
    yield from reader.space()
    if (yield from reader.peek()) == "[":
        yield from read_list(reader, lambda: _read_call(reader, tools))
    else:
        yield from _read_call(reader, tools)
    yield from reader.space()
    yield from reader.optional(END)


def _read_call(reader: Reader, tools: Tools) -> CallReading:
    yield from reader.literal("{")
    yield from reader.space()
    name = yield from read_key(reader, tools)
    arguments = yield from reader.json()
    yield from reader.space()
    yield from reader.literal("}")
    yield call_of(name, arguments, tools)


APERTUS = ToolFormat(
    name="apertus",
    signs=(START,),
    starts=(START,),
    read=read,
    syntax=CallSyntax(
        opening=f"{START}[",
        begin='{"',
        middle='": ',
        end="}",
        separator=", ",
        closing=f"]{END}",
    ),
    markers=(END,),
)
