"""JSON from models that forget their markers, at the beginning of a line, fenced or not:

```json
{"name": "get_weather", "arguments": {"city": "Paris"}}
```
"""

from collections.abc import Sequence

from octavo.streaming.tool_formats.base import Tools, WrittenCall
from octavo.streaming.tool_formats.objects import calls_in
from octavo.streaming.tool_formats.reader import Reader, Reading

FENCES = ("```json", "```tool_call", "```")
STARTS = (*FENCES, "{", "[")


def read(reader: Reader, tools: Tools) -> Reading[Sequence[WrittenCall]]:
    has_fence = (yield from reader.peek()) == "`"
    if has_fence:
        yield from reader.one_of(FENCES)
        yield from reader.space()
    calls = calls_in((yield from reader.json()), tools)
    if has_fence:
        yield from reader.space()
        if (yield from reader.peek()):
            yield from reader.literal("```")
    return calls
