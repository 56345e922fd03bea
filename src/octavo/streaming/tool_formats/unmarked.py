"""Calls in JSON or in Python, wherever they stand: what is none of them is told as early as it can be."""

import re
from collections.abc import Callable, Container
from typing import Any

from octavo.streaming.tool_formats.base import CallReading, Tools, WrittenCall
from octavo.streaming.tool_formats.objects import FIRST_KEYS, LIST, CallIn, call_in, may_be_in_call
from octavo.streaming.tool_formats.pythonic import read_python_call
from octavo.streaming.tool_formats.reader import NotACall, Reader, Reading

_BRACKETS = frozenset("[{")
_BETWEEN = re.compile(r"[\s,;}]*")
"""Also a bracket too many."""


def read_unmarked(reader: Reader, tools: Tools, call_in: CallIn = call_in) -> CallReading:
    """The calls of one object, which may hold a list of them, of one list, or one call in Python."""
    match (yield from reader.peek()):
        case "[":
            yield from read_list(reader, lambda: _item(reader, tools, call_in))
        case "{":
            if (key := (yield from _first_key(reader))) != LIST:
                yield (yield from _object(reader, tools, call_in, key))
                return
            yield from read_list(reader, lambda: _item(reader, tools, call_in))
            yield from reader.space()
            yield from reader.optional("}")
        case _:
            yield from read_python_call(reader, tools)


def read_several(
    reader: Reader, tools: Tools, ends: tuple[str, ...] = (), *, starts: tuple[str, ...] = (), call_in: CallIn = call_in
) -> CallReading:
    """Calls one after the other up to one of the ends, which they may lack, or with starts between them."""
    yield from reader.space()
    is_python = (yield from reader.peek()) not in _BRACKETS
    goes_on = True
    while goes_on:
        yield from read_unmarked(reader, tools, call_in)
        yield from reader.take(_BETWEEN)
        if (yield from reader.optional(*starts, *ends)) in ends:
            return
        yield from reader.space()
        following = yield from reader.peek()
        goes_on = following in _BRACKETS or (is_python and following.isidentifier())


def read_list(reader: Reader, read_item: Callable[[], CallReading]) -> CallReading:
    """A list of at least one item, whose end it may lack."""
    yield from reader.literal("[")
    yield from reader.space()
    while True:
        yield from read_item()
        yield from reader.take(_BETWEEN)
        if (yield from reader.peek()) in ("", "]"):
            break
    yield from reader.optional("]")


def _item(reader: Reader, tools: Tools, call_in: CallIn) -> CallReading:
    if (yield from reader.peek()) == "{":
        key = yield from _first_key(reader)
        yield (yield from _object(reader, tools, call_in, key))
    else:
        yield from read_python_call(reader, tools)


def _first_key(reader: Reader) -> Reading[str]:
    yield from reader.literal("{")
    yield from reader.space()
    return (yield from read_key(reader, FIRST_KEYS))


def read_key(reader: Reader, known: Container[str] | None = None) -> Reading[str]:
    """A member's key, behind which its value follows. Raises NotACall where it is none of those that are known."""
    if (yield from reader.peek()) != '"':
        raise NotACall
    key: str = yield from reader.json()
    if known is not None and key not in known:
        raise NotACall
    yield from reader.space()
    yield from reader.literal(":")
    yield from reader.space()
    return key


def _object(reader: Reader, tools: Tools, call_in: CallIn, key: str) -> Reading[WrittenCall]:
    """What is behind the first key; what cannot be a call is told by that or by its name."""
    members: dict[str, Any] = {}
    while key:
        members[key] = yield from reader.json()
        if not may_be_in_call(key, members[key], tools):
            raise NotACall
        yield from reader.space()
        yield from reader.optional(",")
        yield from reader.space()
        key = (yield from read_key(reader)) if (yield from reader.peek()) == '"' else ""
    yield from reader.literal("}")
    return call_in(members, tools)
