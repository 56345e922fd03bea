"""Kimi K2:

<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Paris"}
<|tool_call_end|><|tool_calls_section_end|>

in one line.
"""

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import CallReading, ToolFormat, Tools, call_of
from octavo.streaming.tool_formats.names import read_name
from octavo.streaming.tool_formats.reader import Reader
from octavo.streaming.tool_formats.sections import Section

OPENING, CLOSING = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
BEGIN, ARGUMENTS, END = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
NAMESPACE = "functions."


def _read_call(reader: Reader, tools: Tools) -> CallReading:
    name = (yield from read_name(reader)).removeprefix(NAMESPACE)
    if (yield from reader.optional(":")):  # the call's number
        yield from read_name(reader)
    yield from reader.literal(ARGUMENTS)
    yield from reader.space()
    yield call_of(name, (yield from reader.json()), tools)


SECTION = Section((OPENING,), BEGIN, CLOSING, _read_call, (END,))

KIMI_K2 = ToolFormat(
    name="kimi-k2",
    signs=(OPENING, ARGUMENTS),
    starts=SECTION.starts,
    read=SECTION.read,
    syntax=CallSyntax(opening=OPENING, begin=f"{BEGIN}{NAMESPACE}", middle=f":0{ARGUMENTS}", end=END, closing=CLOSING),
)
