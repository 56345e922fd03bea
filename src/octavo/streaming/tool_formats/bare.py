"""Calls from models that forget their markers, at the beginning of a line, fenced or not:

```json
{"name": "get_weather", "arguments": {"city": "Paris"}}
```
{"name": "get_weather", "arguments": {"city": "Paris"}}; {"name": "now", "arguments": {}}
[get_weather(city="Paris"), now()]
"""

import re
from collections.abc import Sequence

from octavo.streaming.tool_formats.base import Tools, WrittenCall
from octavo.streaming.tool_formats.reader import Reader, Reading
from octavo.streaming.tool_formats.unmarked import read_several, read_unmarked

FENCE = "```"
FENCES = ("```json", "```tool_call", "```tool_code", "```python", FENCE)
STARTS = (*FENCES, "{", "[")
_SEPARATORS = re.compile("[,;]*")


def read(reader: Reader, tools: Tools) -> Reading[Sequence[WrittenCall]]:
    if (yield from reader.peek()) == FENCE[0]:
        yield from reader.one_of(FENCES)
        return (yield from read_several(reader, tools, FENCE))
    calls = yield from read_unmarked(reader, tools)
    yield from reader.take(_SEPARATORS)  # of calls; the next one begins another search
    return calls
