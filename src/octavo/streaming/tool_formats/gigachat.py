"""GigaChat 3, with a message for each call, and 3.1:

<|message_sep|>

function call<|role_sep|>
{"name": "get_weather", "arguments": {"city": "Paris"}}
<|function_call|>{"name": "get_weather", "arguments": {"city": "Paris"}}<|message_sep|>
"""

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import CallReading, ToolFormat, Tools
from octavo.streaming.tool_formats.reader import Reader
from octavo.streaming.tool_formats.unmarked import read_unmarked

START, END_OF_MESSAGE, END_OF_ROLE = "<|function_call|>", "<|message_sep|>", "<|role_sep|>"
ROLE = f"function call{END_OF_ROLE}"
STARTS = (START, END_OF_MESSAGE, ROLE)


def read(reader: Reader, tools: Tools) -> CallReading:
    """No calls where the answer's message ends and no other follows."""
    if (yield from reader.one_of(STARTS)) == END_OF_MESSAGE:
        yield from reader.space()
        if not (yield from reader.peek()):
            return
        yield from reader.literal(ROLE)
    yield from reader.space()
    yield from read_unmarked(reader, tools)


GIGACHAT_3 = ToolFormat(
    name="gigachat-3",
    signs=(END_OF_ROLE, "'role': 'function call'"),
    starts=STARTS,
    read=read,
    syntax=CallSyntax(
        begin=f'{END_OF_MESSAGE}\n\n{ROLE}\n{{"name": "',
        middle='", "arguments": ',
        end="}",
    ),
    markers=(END_OF_ROLE,),
)

GIGACHAT_3_1 = ToolFormat(
    name="gigachat-3.1",
    signs=(END_OF_ROLE, START),
    starts=STARTS,
    read=read,
    syntax=CallSyntax(begin=f'{START}{{"name": "', middle='", "arguments": ', end="}"),
    markers=(END_OF_ROLE,),
)
