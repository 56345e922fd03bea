"""Calls whose arguments are written one by one, as text between markers."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from octavo.core.tools import Tool
from octavo.streaming.tool_formats.base import CallReading, Tools, call_of
from octavo.streaming.tool_formats.parameter_schemas import property_of
from octavo.streaming.tool_formats.reader import NotACall, Reader, Reading
from octavo.streaming.tool_formats.typed_values import typed


class Parameter(NamedTuple):
    """end: the marker that the text was read up to.

    is_string: whether it is said that the text is the value, and stands for nothing else.
    """

    name: str
    text: str
    end: str
    is_string: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """What is behind the name of a call: begin … begin … end, with white space between them, or JSON and the end.

    begin: what each parameter begins with.
    ends: of the call, each of which may stand for the first.
    read_parameter: reads one behind its `begin`, up to a marker of its own, or to one of these.
    """

    begin: str
    ends: tuple[str, ...]
    read_parameter: Callable[[Reader], Reading[Parameter]]

    def read(self, reader: Reader, name: str, tools: Tools) -> CallReading:
        """The call, whose name is told early not to be one. Its end tells that no argument is missing."""
        if name not in tools:
            raise NotACall
        yield from reader.space()
        if (yield from reader.peek()) == "{":
            yield from self._read_json(reader, name, tools)
            return
        parameters = []
        marker = yield from self._marker(reader)
        while marker == self.begin:
            parameters.append(parameter := (yield from self.read_parameter(reader)))
            is_own = parameter.end in (self.begin, *self.ends)
            marker = parameter.end if is_own else (yield from self._marker(reader))
        yield call_of(name, _arguments(parameters, tools[name]), tools)

    def _marker(self, reader: Reader) -> Reading[str]:
        yield from reader.space()
        return (yield from reader.one_of((self.begin, *self.ends)))

    def _read_json(self, reader: Reader, name: str, tools: Tools) -> CallReading:
        """What the syntax of a forced call makes of it, and some models by themselves."""
        yield call_of(name, (yield from reader.json()), tools)
        yield from reader.space()
        yield from reader.optional(*self.ends)


def _arguments(parameters: Iterable[Parameter], tool: Tool) -> dict[str, Any]:
    schema = tool.parameters
    return {
        each.name: each.text if each.is_string else typed(each.text, property_of(schema, each.name, schema), schema)
        for each in parameters
    }
