"""DeepSeek R1 and V3, and R1's distillates:

<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather
```json
{"city": "Paris"}
```<｜tool▁call▁end｜><｜tool▁calls▁end｜>

and V3.1:

<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>

Distillates spell the first marker as they may.
"""

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import ToolFormat, Tools, WrittenCall, call_of
from octavo.streaming.tool_formats.names import read_name
from octavo.streaming.tool_formats.reader import Reader, Reading
from octavo.streaming.tool_formats.sections import Section

OPENING, CLOSING = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
BEGIN, SEPARATOR, END = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
MISSPELT = ("<｜tool_calls_begin｜>", "<｜tool calls begin｜>", r"<｜tool\_calls\_begin｜>", "<｜tool▁calls｜>")
FENCES = ("```json", "```")


def _read_call(reader: Reader, tools: Tools) -> Reading[WrittenCall]:
    kind_or_name = yield from read_name(reader)
    yield from reader.literal(SEPARATOR)
    name = (yield from read_name(reader)) or kind_or_name
    has_fence = (yield from reader.peek()) == "`"
    if has_fence:
        yield from reader.one_of(FENCES)
        yield from reader.space()
    call = call_of(name, (yield from reader.json()), tools)
    yield from reader.space()
    if has_fence:
        yield from reader.optional("```")
        yield from reader.space()
    yield from reader.optional(END)
    return call


SECTION = Section((OPENING, *MISSPELT), BEGIN, CLOSING, _read_call)

DEEPSEEK_R1 = ToolFormat(
    name="deepseek-r1",
    signs=(OPENING, BEGIN, "```json"),
    starts=SECTION.starts,
    read=SECTION.read,
    syntax=CallSyntax(
        opening=OPENING,
        begin=f"{BEGIN}function{SEPARATOR}",
        middle="\n```json\n",
        end=f"\n```{END}",
        separator="\n",
        closing=CLOSING,
    ),
)

DEEPSEEK_V31 = ToolFormat(
    name="deepseek-v3.1",
    signs=(OPENING, BEGIN),
    starts=SECTION.starts,
    read=SECTION.read,
    syntax=CallSyntax(opening=OPENING, begin=BEGIN, middle=SEPARATOR, end=END, closing=CLOSING),
)
