"""Calls and their parameters with their names in quotes. DeepSeek V3.2, and V4 with tool_calls for function_calls:

<｜DSML｜function_calls>
<｜DSML｜invoke name="get_weather">
<｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>
</｜DSML｜invoke>
</｜DSML｜function_calls>

MiniMax M2:

<minimax:tool_call>
<invoke name="get_weather">
<parameter name="city">Paris</parameter>
</invoke>
</minimax:tool_call>
"""

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import CallReading, ToolFormat, Tools
from octavo.streaming.tool_formats.names import read_name
from octavo.streaming.tool_formats.parameters import Body, Parameter
from octavo.streaming.tool_formats.reader import Reader, Reading
from octavo.streaming.tool_formats.sections import Section


def _format(name: str, signs: tuple[str, ...], tag: str, prefix: str) -> ToolFormat:
    """tag: of the section. prefix: of the tags within it."""
    start, end = f"<{tag}>", f"</{tag}>"
    invoke, invoke_end = f'<{prefix}invoke name="', f"</{prefix}invoke>"
    parameter, parameter_end = f'<{prefix}parameter name="', f"</{prefix}parameter>"

    def read_parameter(reader: Reader) -> Reading[Parameter]:
        name, _ = yield from reader.until('"')
        attributes, _ = yield from reader.until(">")
        text, end = yield from reader.until(parameter_end, parameter, invoke_end)
        return Parameter(name, text, end, is_string='string="true"' in attributes)

    body = Body(parameter, (invoke_end, end), read_parameter)

    def read_call(reader: Reader, tools: Tools) -> CallReading:
        name = yield from read_name(reader)
        yield from reader.literal('">')
        yield from body.read(reader, name, tools)

    section = Section((start,), invoke, end, read_call)
    return ToolFormat(
        name=name,
        signs=signs,
        starts=section.starts,
        read=section.read,
        syntax=CallSyntax(
            opening=f"{start}\n",
            begin=invoke,
            middle='">\n',
            end=f"\n{invoke_end}",
            separator="\n",
            closing=f"\n{end}",
        ),
        markers=(parameter, parameter_end),
    )


DSML = "｜DSML｜"
DEEPSEEK_V32 = _format("deepseek-v3.2", (DSML, "'function_calls>"), f"{DSML}function_calls", DSML)
DEEPSEEK_V4 = _format("deepseek-v4", (DSML, "'tool_calls>"), f"{DSML}tool_calls", DSML)
MINIMAX_M2 = _format("minimax-m2", ("<minimax:tool_call>", "<invoke name="), "minimax:tool_call", "")
