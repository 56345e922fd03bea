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
from octavo.streaming.tool_formats.base import CallReading, ToolFormat, Tools, call_of
from octavo.streaming.tool_formats.names import read_name
from octavo.streaming.tool_formats.reader import Reader
from octavo.streaming.tool_formats.sections import Section

OPENING, CLOSING = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
BEGIN, SEPARATOR, END = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
MISSPELT = ("<｜tool_calls_begin｜>", "<｜tool calls begin｜>", r"<｜tool\_calls\_begin｜>", "<｜tool▁calls｜>")
FENCE_END = "```"
FENCES = ("```json", FENCE_END)


def _read_call(reader: Reader, tools: Tools) -> CallReading:
    kind_or_name = yield from read_name(reader)
    yield from reader.literal(SEPARATOR)
    name = (yield from read_name(reader)) or kind_or_name
    yield from reader.optional(*FENCES)
    yield from reader.space()
    yield call_of(name, (yield from reader.json()), tools)


SECTION = Section((OPENING, *MISSPELT), BEGIN, CLOSING, _read_call, (FENCE_END, END))

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
