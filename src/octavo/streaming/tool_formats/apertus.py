"""Apertus:

<|tools_prefix|>[{"get_weather": {"city": "Paris"}}]<|tools_suffix|>
"""

from collections.abc import Sequence
from typing import Any

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import ToolFormat, Tools, WrittenCall, call_of
from octavo.streaming.tool_formats.reader import NotACall, Reader, Reading

START, END = "<|tools_prefix|>", "<|tools_suffix|>"


def read(reader: Reader, tools: Tools) -> Reading[Sequence[WrittenCall]]:
    yield from reader.literal(START)
    yield from reader.space()
    calls = _calls_in((yield from reader.json()), tools)
    yield from reader.space()
    if (yield from reader.peek()):
        yield from reader.literal(END)
    return calls


def _calls_in(value: Any, tools: Tools) -> Sequence[WrittenCall]:
    objects = value if isinstance(value, list) else [value]
    if not objects or not all(isinstance(each, dict) for each in objects):
        raise NotACall
    return [call_of(name, arguments, tools) for each in objects for name, arguments in each.items()]


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
