"""Calls whose arguments are written one by one, as text between markers."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from octavo.core.tools import Tool
from octavo.streaming.tool_formats.base import Tools, WrittenCall, call_of
from octavo.streaming.tool_formats.reader import NotACall, Reader, Reading
from octavo.streaming.tool_formats.schemas import property_of
from octavo.streaming.tool_formats.typed_values import typed


class Parameter(NamedTuple):
    """is_string: whether it is said that the text is the value, and stands for nothing else."""

    name: str
    text: str
    is_string: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """What is behind the name of a call: begin … begin … end, with white space between them, or JSON and the end.

    begin: what each parameter begins with.
    read_parameter: reads one behind its `begin`.
    """

    begin: str
    end: str
    read_parameter: Callable[[Reader], Reading[Parameter]]

    def read(self, reader: Reader, name: str, tools: Tools) -> Reading[WrittenCall]:
        """The call, whose name is told early not to be one. Its end tells that no argument is missing."""
        if name not in tools:
            raise NotACall
        yield from reader.space()
        if (yield from reader.peek()) == "{":
            return (yield from self._read_json(reader, name, tools))
        parameters = []
        while (yield from reader.one_of((self.begin, self.end))) == self.begin:
            parameters.append((yield from self.read_parameter(reader)))
            yield from reader.space()
        return call_of(name, _arguments(parameters, tools[name]), tools)

    def _read_json(self, reader: Reader, name: str, tools: Tools) -> Reading[WrittenCall]:
        """What the syntax of a forced call makes of it, and some models by themselves."""
        arguments = yield from reader.json()
        yield from reader.space()
        yield from reader.optional(self.end)
        return call_of(name, arguments, tools)


def _arguments(parameters: Iterable[Parameter], tool: Tool) -> dict[str, Any]:
    schema = tool.parameters
    return {
        name: text if is_string else typed(text, property_of(schema, name, schema), schema)
        for name, text, is_string in parameters
    }
