"""Llama 3.1 to 3.3, and 4. What they write without a marker, any model may:

{"name": "get_weather", "parameters": {"city": "Paris"}}
[get_weather(city="Paris"), now()]
<|python_tag|>{"name": "get_weather", "parameters": {"city": "Paris"}}; {"name": "now", "parameters": {}}
<|python_tag|>get_weather.call(city="Paris")
<|python_start|>[get_weather(city="Paris"), now()]<|python_end|>
<function=get_weather>{"city": "Paris"}</function>
"""

from collections.abc import Sequence

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats import functionary_v3_1
from octavo.streaming.tool_formats.base import ToolFormat, Tools, WrittenCall
from octavo.streaming.tool_formats.reader import Reader, Reading
from octavo.streaming.tool_formats.unmarked import read_several

FUNCTION = functionary_v3_1.START
STARTS, END = ("<|python_tag|>", "<|python_start|>"), "<|python_end|>"


def read(reader: Reader, tools: Tools) -> Reading[Sequence[WrittenCall]]:
    if (yield from reader.one_of((*STARTS, FUNCTION))) == FUNCTION:
        return (yield from functionary_v3_1.read_call(reader, tools))
    return (yield from read_several(reader, tools, END))


LLAMA = ToolFormat(
    name="llama",
    signs=("Environment: ipython", '"parameters": '),
    starts=(*STARTS, FUNCTION),
    read=read,
    syntax=CallSyntax(begin='{"name": "', middle='", "parameters": ', end="}", separator="; "),
    markers=(END,),
)
