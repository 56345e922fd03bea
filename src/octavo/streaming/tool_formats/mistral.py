"""Mistral's models: lists of calls until Nemo, then each call by itself, with an id in Small 3.2:

[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}, "id": "a1b2c3d4e"}]
[TOOL_CALLS]get_weather[CALL_ID]a1b2c3d4e[ARGS]{"city": "Paris"}
[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}[TOOL_CALLS]now[ARGS]{}
[TOOL_CALLS]get_weather{"city": "Paris"}
"""

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import CallReading, ToolFormat, Tools, call_of
from octavo.streaming.tool_formats.listed import list_syntax
from octavo.streaming.tool_formats.names import read_name
from octavo.streaming.tool_formats.reader import NotACall, Reader, Reading
from octavo.streaming.tool_formats.unmarked import read_unmarked

START, ID, ARGUMENTS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"


def read(reader: Reader, tools: Tools) -> CallReading:
    yield from reader.literal(START)
    name = yield from read_name(reader)
    if not name:
        yield from read_unmarked(reader, tools)
        return
    if name not in tools:
        raise NotACall
    yield call_of(name, (yield from _arguments(reader)), tools)


def _arguments(reader: Reader) -> Reading[object]:
    if (yield from reader.peek()) == "[" and (yield from reader.one_of((ID, ARGUMENTS))) == ID:
        yield from read_name(reader)
        yield from reader.literal(ARGUMENTS)
    yield from reader.space()
    return (yield from reader.json())


MISTRAL = ToolFormat(
    name="mistral",
    signs=(START, ARGUMENTS),
    starts=(START,),
    read=read,
    syntax=CallSyntax(opening=START, begin="", middle=ARGUMENTS, separator=START),
    markers=(ID,),
)

MISTRAL_NEMO = ToolFormat(
    name="mistral-nemo",
    signs=(START, ', "id": "'),
    starts=(START,),
    read=read,
    syntax=list_syntax(f"{START}[", "]"),
)
