"""What a tool format is."""

import json
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from octavo.core.channels import Channel
from octavo.core.tools import CallSyntax, Tool
from octavo.streaming.tool_formats.reader import NotACall, Reader

Tools = Mapping[str, Tool]
"""What may be called, by name."""


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as a model wrote it. arguments: JSON text of an object."""

    name: str
    arguments: str


CallReading = Generator[WrittenCall | None, None, None]
"""As a Reading, but yields each call as soon as it is complete, too: then the text up to there is used. What is read
behind the last call of one that ends as it should is no text either; of one that raises NotACall, it is."""

ReadCalls = Callable[[Reader, Tools], CallReading]


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """How a model family writes calls.

    signs: texts that together are found in the sources of this format's chat templates alone.
    starts: texts with which calls begin. They are looked for in the channel that `channel` names; those of line_starts
        count only where nothing but white space is before them in their line.
    read: reads all the calls that begin with a start, the start included, up to where other text may follow; none where
        that is only a heading of text. Calls whose arguments say where they end are complete without their end markers:
        a token that ends the generation is not part of the text.
    markers: further texts that a control token may stand for, beside the starts and the syntax.
    syntax: how a call is written that has to be made.
    read_opening: as read, for what an answer begins with where the prompt ends with a start.
    reserved_names: what stands in the place of a function's name for something else: no function of that name can be
        called.
    """

    name: str
    signs: tuple[str, ...]
    starts: tuple[str, ...]
    read: ReadCalls
    syntax: CallSyntax
    markers: tuple[str, ...] = ()
    line_starts: frozenset[str] = frozenset()
    channel: Channel = Channel.ANSWER
    read_opening: ReadCalls | None = None
    reserved_names: frozenset[str] = frozenset()

    @property
    def trigger(self) -> str:
        """What a call begins with in its syntax and no other text does; empty where there is nothing of the kind."""
        first = self.syntax.opening + self.syntax.begin
        starts = [start for start in self.starts if first.startswith(start) and start not in self.line_starts]
        return max(starts, key=len, default="") if self.channel is Channel.ANSWER else ""

    @property
    def texts(self) -> tuple[str, ...]:
        """All that it writes beside names and arguments, among it the names of control tokens."""
        return tuple(text for text in (*self.starts, *self.markers, *self.syntax.texts) if text)


def call_of(name: Any, arguments: Any, tools: Tools) -> WrittenCall:
    """Raises NotACall where nothing of that name may be called, or where the arguments are no JSON object.

    An object that is written as a string is taken for what it says, in which strings may run over lines, and no
    arguments for none.
    """
    if not isinstance(name, str) or name not in tools:
        raise NotACall
    try:
        value = (
            json.loads(arguments, strict=False)
            if isinstance(arguments, str)
            else {}
            if arguments is None
            else arguments
        )
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (ValueError, RecursionError) as error:  # infinities, and halves of surrogate pairs
        raise NotACall from error
    if not isinstance(value, dict):
        raise NotACall
    return WrittenCall(name, text)
