"""Hermes, Qwen 2.5 and 3, and most models without a format of their own:

<tool_call>
{"name": "get_weather", "arguments": {"city": "Paris"}}
</tool_call>
"""

from collections.abc import Sequence

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import ToolFormat, Tools, WrittenCall
from octavo.streaming.tool_formats.objects import calls_in
from octavo.streaming.tool_formats.reader import Reader, Reading

START, END = "<tool_call>", "</tool_call>"


def read(reader: Reader, tools: Tools) -> Reading[Sequence[WrittenCall]]:
    yield from reader.literal(START)
    yield from reader.space()
    calls = calls_in((yield from reader.json()), tools)
    yield from reader.space()
    if (yield from reader.peek()):
        yield from reader.literal(END)
    return calls


HERMES = ToolFormat(
    name="hermes",
    signs=(START, END, '"arguments"'),
    starts=(START,),
    read=read,
    syntax=CallSyntax(begin=f'{START}\n{{"name": "', middle='", "arguments": ', end=f"}}\n{END}", separator="\n"),
    markers=(END,),
)
