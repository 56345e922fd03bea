"""MiniMax M3, whose tags have a token of their own before them, and hold other tags where a value is no scalar:

]<]minimax[>[<tool_call>
]<]minimax[>[<invoke name="search">]<]minimax[>[<tags>]<]minimax[>[<item>sun]<]minimax[>[</item>]<]minimax[>[</tags>…
]<]minimax[>[</tool_call>
"""

from typing import Any

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import CallReading, ToolFormat, Tools, call_of
from octavo.streaming.tool_formats.names import read_name
from octavo.streaming.tool_formats.parameter_schemas import Schema, items_of, property_of, types_in
from octavo.streaming.tool_formats.reader import MAX_DEPTH, NotACall, Reader, Reading
from octavo.streaming.tool_formats.sections import Section
from octavo.streaming.tool_formats.typed_values import typed

NAMESPACE = "]<]minimax[>["
START, END = f"{NAMESPACE}<tool_call>", f"{NAMESPACE}</tool_call>"
INVOKE, INVOKE_END = f'{NAMESPACE}<invoke name="', f"{NAMESPACE}</invoke>"

Element = str | list[tuple[str, Any]]
"""Text, or named elements."""

_EMPTY = {frozenset({"array"}): list[Any], frozenset({"object"}): dict[str, Any]}


def _read_element(reader: Reader, name: str, depth: int = 0) -> Reading[Element]:
    """What is behind the start of an element, its end included."""
    if depth > MAX_DEPTH:
        raise NotACall
    children: list[tuple[str, Any]] = []
    while True:
        text, _ = yield from reader.until(NAMESPACE)
        yield from reader.literal("<")
        tag, _ = yield from reader.until(">")
        if tag == f"/{name}":
            return children or text
        children.append((tag, (yield from _read_element(reader, tag, depth + 1))))


def _value(element: Element, schema: Schema, root: Schema) -> Any:
    """An element with nothing in it is empty, of the type that is admitted."""
    types = types_in(schema, root)
    if element == "" and types in _EMPTY:
        return _EMPTY[types]()
    if isinstance(element, str):
        return typed(element, schema, root)
    if "array" in types and all(name == "item" for name, _ in element):
        return [_value(each, items_of(schema, root), root) for _, each in element]
    return {name: _value(each, property_of(schema, name, root), root) for name, each in element}


def _read_call(reader: Reader, tools: Tools) -> CallReading:
    name = yield from read_name(reader)
    yield from reader.literal('">')
    if name not in tools:
        raise NotACall
    yield from reader.space()
    if (yield from reader.peek()) == "{":
        yield call_of(name, (yield from reader.json()), tools)
        return
    schema = tools[name].parameters
    element = yield from _read_element(reader, "invoke")
    yield call_of(name, {} if isinstance(element, str) else _value(element, schema, schema), tools)


SECTION = Section((START,), INVOKE, END, _read_call, (INVOKE_END,))

MINIMAX_M3 = ToolFormat(
    name="minimax-m3",
    signs=(NAMESPACE, "ns_token"),
    starts=SECTION.starts,
    read=SECTION.read,
    syntax=CallSyntax(
        opening=f"{START}\n", begin=INVOKE, middle='">', end=INVOKE_END, separator="\n", closing=f"\n{END}"
    ),
)
