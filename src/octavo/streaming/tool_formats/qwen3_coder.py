"""Qwen3-Coder, Qwen 3.5, Nemotron 3, Step 3.5:

<tool_call>
<function=get_weather>
<parameter=city>
Paris
</parameter>
</function>
</tool_call>

and Seed-OSS, with <seed:tool_call> for <tool_call>, and values that have no lines of their own.

Models forget the ends within a call.
"""

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import CallReading, ToolFormat, Tools
from octavo.streaming.tool_formats.names import read_name
from octavo.streaming.tool_formats.parameters import Body, Parameter
from octavo.streaming.tool_formats.reader import Reader, Reading
from octavo.streaming.tool_formats.sections import Section

FUNCTION, FUNCTION_END = "<function=", "</function>"
PARAMETER, PARAMETER_END = "<parameter=", "</parameter>"


def _read_parameter(reader: Reader) -> Reading[Parameter]:
    name, _ = yield from reader.until(">")
    text, end = yield from reader.until(PARAMETER_END, PARAMETER, FUNCTION_END)
    is_on_own_lines = len(text) > 1 and text[0] == text[-1] == "\n"
    return Parameter(name.strip(), text[1:-1] if is_on_own_lines else text, end)


def _format(name: str, sign: str, tag: str) -> ToolFormat:
    start, end = f"<{tag}>", f"</{tag}>"
    body = Body(PARAMETER, (FUNCTION_END, end), _read_parameter)

    def read_call(reader: Reader, tools: Tools) -> CallReading:
        name = yield from read_name(reader)
        yield from reader.literal(">")
        yield from body.read(reader, name, tools)

    section = Section((start,), FUNCTION, end, read_call)
    return ToolFormat(
        name=name,
        signs=(FUNCTION, PARAMETER, sign),
        starts=section.starts,
        read=section.read,
        syntax=CallSyntax(begin=f"{start}\n{FUNCTION}", middle=">\n", end=f"\n{FUNCTION_END}\n{end}", separator="\n"),
        markers=(end, FUNCTION_END, PARAMETER, PARAMETER_END),
    )


QWEN3_CODER = _format("qwen3-coder", "<tool_call>", "tool_call")
SEED_OSS = _format("seed-oss", "<seed:tool_call>", "seed:tool_call")
