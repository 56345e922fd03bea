"""Llama 3.1 to 3.3, and 4. What they write without a marker, any model may:

{"name": "get_weather", "parameters": {"city": "Paris"}}
[get_weather(city="Paris"), now()]
<|python_tag|>{"name": "get_weather", "parameters": {"city": "Paris"}}; {"name": "now", "parameters": {}}
<|python_tag|>get_weather.call(city="Paris")
<|python_start|>[get_weather(city="Paris"), now()]<|python_end|>
<function=get_weather>{"city": "Paris"}</function>
"""

from octavo.core.tools import CallSyntax
from octavo.streaming.tool_formats import functionary_v3_1
from octavo.streaming.tool_formats.base import CallReading, ToolFormat, Tools
from octavo.streaming.tool_formats.reader import Reader
from octavo.streaming.tool_formats.unmarked import read_several

FUNCTION = functionary_v3_1.START
STARTS, END = ("<|python_tag|>", "<|python_start|>"), "<|python_end|>"


def read(reader: Reader, tools: Tools) -> CallReading:
    if (yield from reader.one_of((*STARTS, FUNCTION))) == FUNCTION:
        yield from functionary_v3_1.read_call(reader, tools)
    else:
        yield from read_several(reader, tools, (END,), starts=STARTS)


LLAMA = ToolFormat(
    name="llama",
    signs=("Environment: ipython", '"parameters": '),
    starts=(*STARTS, FUNCTION),
    read=read,
    syntax=CallSyntax(begin='{"name": "', middle='", "parameters": ', end="}", separator="; "),
    markers=(END,),
)
