"""MiniMax M1 and Text-01:

<tool_calls>
{"name": "get_weather", "arguments": {"city": "Paris"}}
{"name": "now", "arguments": {}}
</tool_calls>
"""

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats.base import ToolFormat
from octavo.streaming.tool_formats.hermes import ENDS, STARTS, read

MINIMAX_M1 = ToolFormat(
    name="minimax-m1",
    signs=("<tool_calls></tool_calls>", "<beginning_of_sentence>"),
    starts=STARTS,
    read=read,
    syntax=CallSyntax(
        opening="<tool_calls>\n",
        begin='{"name": "',
        middle='", "arguments": ',
        end="}",
        separator="\n",
        closing="\n</tool_calls>",
    ),
    markers=ENDS,
)
