"""gpt-oss (Harmony), with the recipient behind the channel or before it, one call in each message:

<|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris"}<|call|>
<|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>{"city": "Paris"}<|call|>
"""

from octavo.core.channels import Channel
from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import CallReading, ToolFormat, Tools, call_of
from octavo.streaming.tool_formats.names import read_name
from octavo.streaming.tool_formats.reader import NotACall, Reader

RECIPIENT, NAMESPACE, BODY = "to=", "functions.", "<|message|>"


def read(reader: Reader, tools: Tools) -> CallReading:
    yield from reader.literal(RECIPIENT)
    name = (yield from read_name(reader)).removeprefix(NAMESPACE)
    if name not in tools:
        raise NotACall
    yield from reader.until(BODY)
    yield from reader.space()
    yield call_of(name, (yield from reader.json()), tools)


HARMONY = ToolFormat(
    name="harmony",
    signs=("<|channel|>analysis<|message|>",),
    starts=(RECIPIENT,),
    read=read,
    syntax=CallSyntax(
        begin=f"<|channel|>commentary {RECIPIENT}{NAMESPACE}",
        middle=f" <|constrain|>json{BODY}",
        is_repeatable=False,
    ),
    channel=Channel.HIDDEN,
)
