"""Kimi K3, with the arguments one by one or as JSON, and all in one line:

<|open|>tools<|sep|>
<|open|>call tool="get_weather" index="1"<|sep|>
<|open|>argument key="city" type="string"<|sep|>Paris<|close|>argument<|sep|>
<|close|>call<|sep|>
<|open|>call tool="get_weather" index="2"<|sep|>
<|open|>json type="object"<|sep|>{"city": "Paris"}<|close|>json<|sep|>
<|close|>call<|sep|>
<|close|>tools<|sep|>
"""

import re
from collections.abc import Mapping
from html import unescape
from typing import Any

from octavo.core.channels import Channel
from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import CallReading, ToolFormat, Tools, call_of
from octavo.streaming.tool_formats.reader import NotACall, Reader, Reading
from octavo.streaming.tool_formats.typed_values import value_in

OPEN, CLOSE, SEP = "<|open|>", "<|close|>", "<|sep|>"
CALL, ARGUMENT, JSON = f"{OPEN}call ", f"{OPEN}argument ", f"{OPEN}json "
CALL_END, JSON_END = f"{CLOSE}call{SEP}", f"{CLOSE}json{SEP}"
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


def read(reader: Reader, tools: Tools) -> CallReading:
    yield from reader.literal(CALL)
    name = (yield from _attributes(reader)).get("tool")
    arguments: dict[str, Any] = {}
    yield from reader.space()
    while (part := (yield from reader.one_of((ARGUMENT, JSON, CALL_END)))) != CALL_END:
        arguments |= yield from (_argument(reader) if part == ARGUMENT else _json(reader))
        yield from reader.space()
    yield call_of(name, arguments, tools)


def _attributes(reader: Reader) -> Reading[Mapping[str, str]]:
    text, _ = yield from reader.until(SEP)
    return {key: unescape(value) for key, value in _ATTRIBUTE.findall(text)}


def _argument(reader: Reader) -> Reading[dict[str, Any]]:
    attributes = yield from _attributes(reader)
    text, _ = yield from reader.until(CLOSE)
    yield from reader.literal(f"argument{SEP}")
    return {attributes.get("key", ""): text if attributes.get("type") == "string" else value_in(text)}


def _json(reader: Reader) -> Reading[dict[str, Any]]:
    yield from _attributes(reader)
    arguments = yield from reader.json()
    if not isinstance(arguments, dict):
        raise NotACall
    yield from reader.space()
    yield from reader.literal(JSON_END)
    return arguments


KIMI_K3 = ToolFormat(
    name="kimi-k3",
    signs=(OPEN, CLOSE, SEP),
    starts=(CALL,),
    read=read,
    syntax=CallSyntax(
        opening=f"{OPEN}tools{SEP}",
        begin=f'{CALL}tool="',
        middle=f'" index="1"{SEP}{JSON}type="object"{SEP}',
        end=JSON_END,
        separator=CALL_END,
        closing=f"{CALL_END}{CLOSE}tools{SEP}",
    ),
    channel=Channel.HIDDEN,
)
