"""Functionary 3.1:

<function=get_weather>{"city": "Paris"}</function>
"""

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import CallReading, ToolFormat, Tools, call_of
from octavo.streaming.tool_formats.names import read_name
from octavo.streaming.tool_formats.reader import NotACall, Reader

START, END = "<function=", "</function>"


def read(reader: Reader, tools: Tools) -> CallReading:
    yield from reader.literal(START)
    yield from read_call(reader, tools)


def read_call(reader: Reader, tools: Tools) -> CallReading:
    """The call behind its start. Without arguments it needs its end: else it may have been cut short before them."""
    name = yield from read_name(reader)
    if name not in tools:
        raise NotACall
    yield from reader.optional(">")
    yield from reader.space()
    if (yield from reader.peek()) == "{":
        yield call_of(name, (yield from reader.json()), tools)
        yield from reader.space()
        yield from reader.optional(END)
    else:
        yield from reader.literal(END)
        yield call_of(name, None, tools)


FUNCTIONARY_V3_1 = ToolFormat(
    name="functionary-v3.1",
    signs=(f'{START}example_function_name>{{"example_name"',),
    starts=(START,),
    read=read,
    syntax=CallSyntax(opening=START, begin="", middle=">", end=END, separator=START),
)
