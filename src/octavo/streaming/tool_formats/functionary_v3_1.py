"""Functionary 3.1:

<function=get_weather>{"city": "Paris"}</function>
"""

from collections.abc import Sequence

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import ToolFormat, Tools, WrittenCall, call_of
from octavo.streaming.tool_formats.names import read_name
from octavo.streaming.tool_formats.reader import NotACall, Reader, Reading

START, END = "<function=", "</function>"


def read(reader: Reader, tools: Tools) -> Reading[Sequence[WrittenCall]]:
    yield from reader.literal(START)
    return (yield from read_call(reader, tools))


def read_call(reader: Reader, tools: Tools) -> Reading[Sequence[WrittenCall]]:
    """The call behind its start. Without arguments it needs its end: else it may have been cut short before them."""
    name = yield from read_name(reader)
    if name not in tools:
        raise NotACall
    yield from reader.optional(">")
    yield from reader.space()
    arguments = (yield from reader.json()) if (yield from reader.peek()) == "{" else None
    yield from reader.space()
    if arguments is None or (yield from reader.peek()):
        yield from reader.literal(END)
    return [call_of(name, arguments, tools)]


FUNCTIONARY_V3_1 = ToolFormat(
    name="functionary-v3.1",
    signs=(f'{START}example_function_name>{{"example_name"',),
    starts=(START,),
    read=read,
    syntax=CallSyntax(opening=START, begin="", middle=">", end=END, separator=START),
)
