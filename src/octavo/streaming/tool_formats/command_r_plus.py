"""Command R and R+:

Action:
```json
[
    {
        "tool_name": "get_weather",
        "parameters": {"city": "Paris"}
    }
]```
"""

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats import bare
from octavo.streaming.tool_formats.base import CallReading, ToolFormat, Tools
from octavo.streaming.tool_formats.reader import Reader

START = "Action:"


def read(reader: Reader, tools: Tools) -> CallReading:
    yield from reader.literal(START)
    yield from reader.space()
    yield from bare.read(reader, tools)


COMMAND_R_PLUS = ToolFormat(
    name="command-r-plus",
    signs=("json-formatted list of actions",),
    starts=(START,),
    line_starts=frozenset({START}),
    read=read,
    syntax=CallSyntax(
        opening=f"{START}\n```json\n[\n",
        begin='    {\n        "tool_name": "',
        middle='",\n        "parameters": ',
        end="\n    }",
        separator=",\n",
        closing="\n]```",
    ),
)
