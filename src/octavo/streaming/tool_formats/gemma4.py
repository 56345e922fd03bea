"""Gemma 4, whose strings stand in quotes of their own, and whose keys in none:

<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:3,near:[<|"|>Rouen<|"|>]}<tool_call|>
"""

from typing import Any

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import CallReading, ToolFormat, Tools, call_of
from octavo.streaming.tool_formats.names import read_name
from octavo.streaming.tool_formats.reader import MAX_DEPTH, NotACall, Reader, Reading

START, END, QUOTE = "<|tool_call>", "<tool_call|>", '<|"|>'
CALL = "call:"


def read(reader: Reader, tools: Tools) -> CallReading:
    yield from reader.literal(START + CALL)
    name = yield from read_name(reader)
    if name not in tools or (yield from reader.peek()) != "{":
        raise NotACall
    yield call_of(name, (yield from _value(reader, MAX_DEPTH)), tools)
    yield from reader.space()
    yield from reader.optional(END)


def _value(reader: Reader, depth: int) -> Reading[Any]:
    if not depth:
        raise NotACall
    match (yield from reader.peek()):
        case "{":
            return (yield from _object(reader, depth))
        case "[":
            return (yield from _array(reader, depth))
        case "<":
            return (yield from _string(reader))
        case "N":
            return (yield from reader.literal("None"))
        case _:
            return (yield from reader.json())


def _object(reader: Reader, depth: int) -> Reading[dict[str, Any]]:
    members: dict[str, Any] = {}
    yield from reader.literal("{")
    while (yield from _goes_on(reader, "}", is_first=not members)):
        key = yield from _key(reader)
        yield from reader.space()
        members[key] = yield from _value(reader, depth - 1)
    return members


def _array(reader: Reader, depth: int) -> Reading[list[Any]]:
    items: list[Any] = []
    yield from reader.literal("[")
    while (yield from _goes_on(reader, "]", is_first=not items)):
        items.append((yield from _value(reader, depth - 1)))
    return items


def _goes_on(reader: Reader, end: str, *, is_first: bool) -> Reading[bool]:
    """Whether another part follows, before which the comma has been read, and not the end, which has."""
    yield from reader.space()
    if (yield from reader.optional(end)):
        return False
    if not is_first:
        yield from reader.literal(",")
        yield from reader.space()
    return True


def _key(reader: Reader) -> Reading[str]:
    match (yield from reader.peek()):
        case "<":
            key = yield from _string(reader)
        case '"':
            key = yield from reader.json()
        case _:
            return (yield from reader.until(":"))[0].strip()
    yield from reader.space()
    yield from reader.literal(":")
    return key


def _string(reader: Reader) -> Reading[str]:
    yield from reader.literal(QUOTE)
    return (yield from reader.until(QUOTE))[0]


GEMMA_4 = ToolFormat(
    name="gemma-4",
    signs=(START + CALL,),
    starts=(START,),
    read=read,
    syntax=CallSyntax(begin=START + CALL, middle="", separator=END, closing=END),
    markers=(QUOTE,),
)
