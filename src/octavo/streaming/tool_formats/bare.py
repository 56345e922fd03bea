"""Calls from models that forget their markers, at the beginning of a line, fenced or not:

```json
{"name": "get_weather", "arguments": {"city": "Paris"}}
```
{"name": "get_weather", "arguments": {"city": "Paris"}}; {"name": "now", "arguments": {}}
[get_weather(city="Paris"), now()]

Python that stands in a fence of its own is an example, unless the fence says that it is a call.
"""

import re

from octavo.streaming.tool_formats.base import CallReading, Tools
from octavo.streaming.tool_formats.objects import evident_call_in
from octavo.streaming.tool_formats.reader import NotACall, Reader
from octavo.streaming.tool_formats.unmarked import read_several, read_unmarked

FENCE = "```"
CODE_FENCE = "```tool_code"
FENCES = ("```json", "```tool_call", CODE_FENCE, FENCE)
BRACKETS = ("{", "[")
STARTS = (*FENCES, *BRACKETS)
_SEPARATORS = re.compile("[,;]*")


def read(reader: Reader, tools: Tools) -> CallReading:
    if (yield from reader.peek()) == FENCE[0]:
        yield from _read_fenced(reader, tools)
        return
    yield from read_unmarked(reader, tools, evident_call_in)
    yield from reader.take(_SEPARATORS)  # of calls; the next one begins another search


def _read_fenced(reader: Reader, tools: Tools) -> CallReading:
    fence = yield from reader.one_of(FENCES)
    yield from reader.space()
    if fence != CODE_FENCE and (yield from reader.peek()) not in BRACKETS:
        raise NotACall
    yield from read_several(reader, tools, (FENCE,), call_in=evident_call_in)
