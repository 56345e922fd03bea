"""Solar Open, whose calls bring ids of their own:

<|tool_calls|><|tool_call:begin|>a1b2c3d4e5<|tool_call:name|>get_weather<|tool_call:args|>{"city": "Paris"}
<|tool_call:end|><|calls|>

without the line end.
"""

from octavo.core.channels import Channel
from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import CallReading, ToolFormat, Tools, call_of
from octavo.streaming.tool_formats.reader import Reader

BEGIN, NAME, ARGUMENTS, END = "<|tool_call:begin|>", "<|tool_call:name|>", "<|tool_call:args|>", "<|tool_call:end|>"
_SOME_ID = "a1b2c3d4e5"


def read(reader: Reader, tools: Tools) -> CallReading:
    yield from reader.literal(BEGIN)
    yield from reader.until(NAME)
    name, _ = yield from reader.until(ARGUMENTS)
    yield call_of(name.strip(), (yield from reader.json()), tools)


SOLAR = ToolFormat(
    name="solar",
    signs=(BEGIN, NAME, ARGUMENTS),
    starts=(BEGIN,),
    read=read,
    syntax=CallSyntax(
        opening="<|tool_calls|>",
        begin=f"{BEGIN}{_SOME_ID}{NAME}",
        middle=ARGUMENTS,
        separator=END,
        closing=END,
    ),
    channel=Channel.HIDDEN,
)
