"""Calls that stand in a section of their own."""

from dataclasses import dataclass

from octavo.streaming.tool_formats.base import CallReading, ReadCalls, Tools
from octavo.streaming.tool_formats.reader import Reader


@dataclass(frozen=True, slots=True)
class Section:
    """start begin … begin … end, with white space between all of them.

    openings: texts that may stand for the start.
    begin: what each call begins with.
    read_call: reads a call behind its `begin`, as far as it must be there.
    call_ends: texts that may stand behind each call.
    """

    openings: tuple[str, ...]
    begin: str
    end: str
    read_call: ReadCalls
    call_ends: tuple[str, ...] = ()

    @property
    def starts(self) -> tuple[str, ...]:
        """Models forget the section, and write the calls alone."""
        return (*self.openings, self.begin)

    def read(self, reader: Reader, tools: Tools) -> CallReading:
        """All of the section's calls, of which there is at least one."""
        if (yield from reader.one_of(self.starts)) != self.begin:
            yield from reader.space()
            yield from reader.literal(self.begin)
        marker = self.begin
        while marker not in ("", self.end):
            if marker == self.begin:
                yield from self.read_call(reader, tools)
            yield from reader.space()
            marker = yield from reader.optional(*self.starts, self.end, *self.call_ends)
