"""Functionary 3.2, whose answers are messages to the user or to functions. The prompt ends with the first ">>>".

>>>all
I will look.>>>get_weather
{"city": "Paris"}>>>now
{}
"""

import re

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import CallReading, ToolFormat, Tools, call_of
from octavo.streaming.tool_formats.reader import NotACall, Reader

START, USER = ">>>", "all"
_RECIPIENT = re.compile(r"[\w.\- ]*")


def read(reader: Reader, tools: Tools) -> CallReading:
    yield from reader.literal(START)
    yield from read_message(reader, tools)


def read_message(reader: Reader, tools: Tools) -> CallReading:
    """The call of a message to a function; no calls, and no more than the heading, of one to the user."""
    recipient = (yield from reader.take(_RECIPIENT)).strip()
    yield from reader.literal("\n")
    if recipient == USER:
        return
    if recipient not in tools:
        raise NotACall
    yield from reader.space()
    yield call_of(recipient, (yield from reader.json()), tools)


FUNCTIONARY_V3_2 = ToolFormat(
    name="functionary-v3.2",
    signs=(f"{START}${{recipient}}",),
    starts=(START,),
    read=read,
    read_opening=read_message,
    syntax=CallSyntax(begin="", middle="\n", separator=START),
    reserved_names=frozenset({USER}),
)
