"""MiniCPM 5:

<function name="get_weather"><param name="city">Paris</param></function>

Text that XML would read otherwise stands between <![CDATA[ and ]]>.
"""

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import CallReading, ToolFormat, Tools
from octavo.streaming.tool_formats.names import read_name
from octavo.streaming.tool_formats.parameters import Body, Parameter
from octavo.streaming.tool_formats.reader import Reader, Reading

START, END = '<function name="', "</function>"
PARAMETER, PARAMETER_END = '<param name="', "</param>"
QUOTE, QUOTE_END = "<![CDATA[", "]]>"
_VALUE_ENDS = (PARAMETER_END, QUOTE, PARAMETER, END)


def _read_parameter(reader: Reader) -> Reading[Parameter]:
    name, _ = yield from reader.until('">')
    text, end = yield from reader.until(*_VALUE_ENDS)
    texts = [text]
    while end == QUOTE:
        quoted, _ = yield from reader.until(QUOTE_END)
        text, end = yield from reader.until(*_VALUE_ENDS)
        texts += [quoted, text]
    return Parameter(name, "".join(texts), end)


BODY = Body(PARAMETER, (END,), _read_parameter)


def read(reader: Reader, tools: Tools) -> CallReading:
    yield from reader.literal(START)
    name = yield from read_name(reader)
    yield from reader.literal('">')
    yield from BODY.read(reader, name, tools)


MINICPM = ToolFormat(
    name="minicpm",
    signs=('<function name="', '<param name="', QUOTE),
    starts=(START,),
    read=read,
    syntax=CallSyntax(begin=START, middle='">', end=END, separator="\n"),
    markers=(PARAMETER, PARAMETER_END),
)
