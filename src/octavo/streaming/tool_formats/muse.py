"""Muse, one call in each message, whose header names the function too; in JSON where calls are forced:

<|start|>assistant to=get_weather<|message|>{"city": "Paris"}
<|start|>assistant to=get_weather<|message|><atem:function_calls>
<atem:invoke name="get_weather">
<atem:parameter name="city">Paris</atem:parameter>
</atem:invoke>
</atem:function_calls>
"""

from octavo.core.channels import Channel
from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import CallReading, ToolFormat, Tools, call_of
from octavo.streaming.tool_formats.parameters import Body, Parameter
from octavo.streaming.tool_formats.reader import NotACall, Reader, Reading

RECIPIENT, MESSAGE = "to=", "<|message|>"
CALLS = "<atem:function_calls>"
INVOKE, INVOKE_END, PARAMETER = '<atem:invoke name="', "</atem:invoke>", '<atem:parameter name="'


def _read_parameter(reader: Reader) -> Reading[Parameter]:
    name, _ = yield from reader.until('">')
    text, end = yield from reader.until("</atem:parameter>", PARAMETER, INVOKE_END)
    return Parameter(name, text, end)


STARTS = (RECIPIENT, INVOKE)
BODY = Body(PARAMETER, (INVOKE_END,), _read_parameter)


def read(reader: Reader, tools: Tools) -> CallReading:
    if (yield from reader.one_of(STARTS)) == RECIPIENT:
        recipient, _ = yield from reader.until(MESSAGE)
        if recipient not in tools:
            raise NotACall
        yield from reader.space()
        if (yield from reader.peek()) == "{":
            yield call_of(recipient, (yield from reader.json()), tools)
            return
        yield from reader.literal(CALLS)
        yield from reader.space()
        yield from reader.literal(INVOKE)
    name, _ = yield from reader.until('">')
    yield from BODY.read(reader, name, tools)


MUSE = ToolFormat(
    name="muse",
    signs=(INVOKE, PARAMETER),
    starts=STARTS,
    read=read,
    syntax=CallSyntax(begin=f" {RECIPIENT}", middle=MESSAGE, separator="<|eom|><|start|>assistant"),
    channel=Channel.HIDDEN,
    reserved_names=frozenset({"self", "user"}),
)
