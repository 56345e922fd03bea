"""GLM 4.5 to 4.7, Laguna, Spark, Ling:

<tool_call>get_weather
<arg_key>city</arg_key>
<arg_value>Paris</arg_value>
</tool_call>

with or without the line ends; and Hunyuan 3, with a section around the calls and a suffix to all markers:

<tool_calls:opensource>
<tool_call:opensource>get_weather<tool_sep:opensource>
<arg_key:opensource>city</arg_key:opensource>
<arg_value:opensource>Paris</arg_value:opensource>
</tool_call:opensource>
</tool_calls:opensource>
"""

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import CallReading, ToolFormat, Tools
from octavo.streaming.tool_formats.names import read_name
from octavo.streaming.tool_formats.parameters import Body, Parameter
from octavo.streaming.tool_formats.reader import Reader, Reading
from octavo.streaming.tool_formats.sections import Section


def _body(suffix: str = "") -> Body:
    begin, value, value_end = f"<arg_key{suffix}>", f"<arg_value{suffix}>", f"</arg_value{suffix}>"

    def read_parameter(reader: Reader) -> Reading[Parameter]:
        name, _ = yield from reader.until(f"</arg_key{suffix}>")
        yield from reader.space()
        yield from reader.literal(value)
        text, end = yield from reader.until(value_end, begin)
        return Parameter(name.strip(), text, end)

    return Body(begin, (f"</tool_call{suffix}>",), read_parameter)


def _markers(suffix: str = "") -> tuple[str, ...]:
    return tuple(f"{bracket}{tag}{suffix}>" for tag in ("arg_key", "arg_value") for bracket in ("<", "</"))


START, END = "<tool_call>", "</tool_call>"
BODY = _body()


def read(reader: Reader, tools: Tools) -> CallReading:
    yield from reader.literal(START)
    name = yield from read_name(reader)
    yield from BODY.read(reader, name, tools)


GLM = ToolFormat(
    name="glm",
    signs=(START, "<arg_key>", "<arg_value>"),
    starts=(START,),
    read=read,
    syntax=CallSyntax(begin=START, middle="\n", end=f"\n{END}", separator="\n"),
    markers=(END, *_markers()),
)

SUFFIX = ":opensource"
SEPARATOR = f"<tool_sep{SUFFIX}>"
HUNYUAN_BODY = _body(SUFFIX)


def _read_hunyuan_call(reader: Reader, tools: Tools) -> CallReading:
    name = yield from read_name(reader)
    yield from reader.literal(SEPARATOR)
    yield from HUNYUAN_BODY.read(reader, name, tools)


SECTION = Section((f"<tool_calls{SUFFIX}>",), f"<tool_call{SUFFIX}>", f"</tool_calls{SUFFIX}>", _read_hunyuan_call)

HUNYUAN = ToolFormat(
    name="hunyuan",
    signs=(f"'{SUFFIX}'", "'<tool_sep{}>'", "'<arg_key{}>'"),
    starts=SECTION.starts,
    read=SECTION.read,
    syntax=CallSyntax(
        opening=f"{SECTION.openings[0]}\n",
        begin=SECTION.begin,
        middle=f"{SEPARATOR}\n",
        end=f"\n{HUNYUAN_BODY.ends[0]}",
        separator="\n",
        closing=f"\n{SECTION.end}",
    ),
    markers=_markers(SUFFIX),
)
