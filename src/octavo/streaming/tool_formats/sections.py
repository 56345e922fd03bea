"""Calls that stand in a section of their own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from octavo.streaming.tool_formats.base import Tools, WrittenCall
from octavo.streaming.tool_formats.reader import NotACall, Reader, Reading


@dataclass(frozen=True, slots=True)
class Section:
    """start begin … begin … end, with white space between all of them.

    openings: texts that may stand for the start.
    begin: what each call begins with.
    read_call: reads a call behind its `begin`, up to where the next one or the end may follow.
    """

    openings: tuple[str, ...]
    begin: str
    end: str
    read_call: Callable[[Reader, Tools], Reading[WrittenCall]]

    @property
    def starts(self) -> tuple[str, ...]:
        """Models forget the section, and write the calls alone."""
        return (*self.openings, self.begin)

    def read(self, reader: Reader, tools: Tools) -> Reading[Sequence[WrittenCall]]:
        """All of the section's calls. Raises NotACall where there is none."""
        calls = []
        marker = yield from reader.one_of(self.starts)
        while marker != self.end:
            if marker == self.begin:
                calls.append((yield from self.read_call(reader, tools)))
            yield from reader.space()
            if calls and (yield from reader.peek()) != self.end[0]:
                return calls
            marker = yield from reader.one_of((self.begin, self.end))
        if not calls:
            raise NotACall
        return calls
