"""Calls, told from the text of an answer."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Protocol

from octavo.core.channels import Channel
from octavo.core.tools import ToolCallDelta, ToolUse
from octavo.streaming.markers import MarkerSearch
from octavo.streaming.segment import Segment
from octavo.streaming.tool_formats import BY_NAME, bare
from octavo.streaming.tool_formats.base import CallReading, ReadCalls, WrittenCall
from octavo.streaming.tool_formats.reader import NotACall, Reader, Reading

_SLICE = 2048
"""Characters that are looked at together: what is behind the end of a call, or of what is none, is taken up again."""

_NOT_IN_FENCES = frozenset((bare.FENCE, *bare.BRACKETS))
"""With which no call begins in a block of code: the first of them ends it."""


class ToolMachine(Protocol):
    """Hides the text of calls, and gives the calls to whom they concern.

    is_cut: whether the answer has ended, because it has its only call.
    """

    @property
    def is_cut(self) -> bool: ...

    def push(self, segments: Sequence[Segment]) -> list[Segment]: ...

    def flush(self) -> list[Segment]: ...


class NoCalls:
    """Where none may be made."""

    is_cut = False

    def push(self, segments: Sequence[Segment]) -> list[Segment]:
        return list(segments)

    def flush(self) -> list[Segment]:
        return []


class CallLog:
    """Numbers the calls of a choice and gives them their ids, which depend on nothing but the request's id."""

    def __init__(self, request_id: str, emit: Callable[[ToolCallDelta], None]) -> None:
        self._request_id = request_id
        self._emit = emit
        self.num_calls = 0

    def begin(self, name: str) -> None:
        digest = blake2b(f"{self._request_id}/{self.num_calls}".encode(), digest_size=12).hexdigest()
        self._emit(ToolCallDelta(self.num_calls, f"call_{digest}", name, ""))
        self.num_calls += 1

    def write(self, arguments: str) -> None:
        """More of the arguments of the call that was begun last."""
        if arguments:
            self._emit(ToolCallDelta(self.num_calls - 1, "", "", arguments))


def new_tool_machine(use: ToolUse, log: CallLog) -> ToolMachine:
    if not use.tools:
        return NoCalls()
    return ForcedCalls(use, log) if use.is_forced else WrittenCalls(use, log)


class WrittenCalls:
    """Finds the calls that a model chose to make, in its format or in bare JSON.

    A call is told once it is complete, and until then its text is held back: so what turns out to be no call is text
    like any other, but the calls before it stay calls. Nor is bare JSON a call in a block of code. White space around
    calls is hidden with them, but for that between a call and the text behind it where there is text before it too.
    """

    def __init__(self, use: ToolUse, log: CallLog) -> None:
        format = BY_NAME[use.format]
        self._tools = {tool.name: tool for tool in use.tools}
        self._is_parallel = use.is_parallel
        self._log = log
        self._line_starts = format.line_starts.union(bare.STARTS)
        readers: dict[Channel, dict[str, ReadCalls]] = {format.channel: {}}
        if use.reads_unmarked:
            readers[Channel.ANSWER] = dict.fromkeys(bare.STARTS, bare.read)
        readers[format.channel].update(dict.fromkeys(format.starts, format.read))
        self._readers = readers
        self._searches = {channel: MarkerSearch(tuple(starts)) for channel, starts in readers.items()}
        self._channel = Channel.HIDDEN
        self._attempt: tuple[Reader, CallReading] | None = None
        if format.read_opening is not None:
            reader = Reader()
            self._channel, self._attempt = format.channel, (reader, format.read_opening(reader, self._tools))
        self._space: list[str] = []  # that the text ends with
        self._is_behind_call = False  # nothing but white space since the last call
        self._is_line_blank = True
        self._is_in_fence = False  # of which the beginning was no call's
        self._has_text = False
        self.is_cut = False

    def push(self, segments: Sequence[Segment]) -> list[Segment]:
        settled: list[Segment] = []
        for channel, text in segments:
            if channel is not self._channel:
                settled += self.flush()
                self._channel = channel
            for start in range(0, len(text), _SLICE):
                settled += self._part(text[start : start + _SLICE])
        return [*settled, (self._channel, "")]

    def flush(self) -> list[Segment]:
        """All that is held, when no more of this channel's text follows."""
        settled = self._part("", is_last=True)
        return [*settled, (Channel.HIDDEN if self._is_behind_call else self._channel, self._taken_space())]

    def _part(self, text: str, *, is_last: bool = False) -> list[Segment]:
        settled, rest = self._step(text, is_last)
        while rest or (is_last and self._attempt is not None):
            more, rest = self._step(rest, is_last)
            settled += more
        return settled

    def _step(self, text: str, is_last: bool) -> tuple[list[Segment], str]:
        """What is settled up to the next start or end of calls, and the text behind that."""
        if self.is_cut:
            return [(Channel.HIDDEN, text)], ""
        if self._attempt is not None:
            return self._read_on(text, is_last)
        if self._channel not in self._searches:
            return [(self._channel, text)], ""
        before, start, rest = self._searches[self._channel].find(text, is_last=is_last)
        settled = self._text(before)
        if not self._is_in_place(start):
            return settled + self._text(start), rest
        if start:
            reader = Reader()
            self._attempt = reader, self._readers[self._channel][start](reader, self._tools)
        return settled, start + rest

    def _is_in_place(self, start: str) -> bool:
        if start in self._line_starts and not self._is_line_blank:
            return False
        if not self._is_in_fence or start not in _NOT_IN_FENCES:
            return True
        self._is_in_fence = start != bare.FENCE
        return False

    def _read_on(self, text: str, is_last: bool) -> tuple[list[Segment], str]:
        assert self._attempt is not None
        reader, reading = self._attempt
        reader.feed(text)
        if is_last:
            reader.end()
        settled: list[Segment] = []
        try:
            for call in reading:
                if call is None:
                    return settled, ""
                settled += self._call(call, reader.drain())
                if self.is_cut:
                    break
            settled += self._markup(reader.text)
        except NotACall:
            self._is_in_fence = self._is_in_fence or reader.text.startswith(bare.FENCE)
            settled += self._text(reader.text)
        self._attempt = None
        return settled, reader.rest

    def _call(self, call: WrittenCall, text: str) -> list[Segment]:
        self._log.begin(call.name)
        self._log.write(call.arguments)
        self.is_cut = not self._is_parallel
        return self._markup(text)

    def _markup(self, text: str) -> list[Segment]:
        """What belongs to calls, but for the white space behind it."""
        body = text.rstrip()
        hidden, space = self._taken_space() + body, text[len(body) :]
        self._space.append(space)
        self._is_line_blank = self._is_line_blank or "\n" in space
        self._is_behind_call = True
        return [(Channel.HIDDEN, hidden)]

    def _text(self, text: str) -> list[Segment]:
        body = text.rstrip()
        line = text.rpartition("\n")[2]
        self._is_line_blank = not line.strip() and (self._is_line_blank or "\n" in text)
        if not body:
            self._space.append(text)
            return []
        space = self._taken_space() + body[: len(body) - len(body.lstrip())]
        before = Channel.HIDDEN if self._is_behind_call and not self._has_text else self._channel
        self._is_behind_call, self._has_text = False, True
        self._space.append(text[len(body) :])
        return [(before, space), (self._channel, body.lstrip())]

    def _taken_space(self) -> str:
        space = "".join(self._space)
        self._space.clear()
        return space


class ForcedCalls:
    """Follows an answer that is calls by its grammar, so that arguments can be told while they are written.

    Text of the format's channel that is something else after all stays what it is there.
    """

    def __init__(self, use: ToolUse, log: CallLog) -> None:
        format = BY_NAME[use.format]
        self._channel = format.channel
        self._syntax = format.syntax
        self._names = {tool.name + format.syntax.middle: tool.name for tool in use.tools}
        self._is_parallel = use.is_parallel
        self._log = log
        self._reader = Reader()
        self._reading: Reading[None] | None = self._read()
        self._is_in_arguments = False
        self._held: list[str] = []
        self.is_cut = False

    def push(self, segments: Sequence[Segment]) -> list[Segment]:
        settled: list[Segment] = []
        for channel, text in segments:
            settled += self._part(text) if channel is self._channel and text else [(channel, text)]
        return settled

    def flush(self) -> list[Segment]:
        """A call that was cut before its name is known is hidden: it was no text."""
        is_within = self._reading is not None
        self._reader.feed("")
        self._reader.end()
        settled = self._read_on()
        return [(Channel.HIDDEN, text) for _, text in settled] if is_within else settled

    def _part(self, text: str) -> list[Segment]:
        if self._reading is None:
            return [(Channel.HIDDEN if self.is_cut else self._channel, text)]
        self._reader.feed(text)
        self._held.append(text)
        return self._read_on()

    def _read_on(self) -> list[Segment]:
        if self._reading is None:
            return []
        try:
            next(self._reading)
        except (NotACall, StopIteration):
            self._reading = None
        if self._is_in_arguments:
            self._log.write(self._reader.drain())
        if self._channel is Channel.ANSWER and self._reading is not None and not self._log.num_calls:
            return []
        held = "".join(self._held)
        rest = "" if self._reading is not None or self.is_cut else self._reader.rest
        self._held.clear()
        read = held.removesuffix(rest)
        return [(Channel.HIDDEN if self._log.num_calls else self._channel, read), (self._channel, rest)]

    def _read(self) -> Reading[None]:
        reader, syntax = self._reader, self._syntax
        again = syntax.separator + syntax.begin
        name = yield from self._first_name()
        while True:
            reader.drain()
            self._log.begin(name)
            self._is_in_arguments = True
            yield from reader.skip_json()
            self._log.write(reader.drain())
            self._is_in_arguments = False
            yield from reader.literal(syntax.end)
            if not self._is_parallel:
                self.is_cut = True
                return
            if (yield from reader.one_of((again, syntax.closing))) != again:
                return
            name = yield from self._name()

    def _first_name(self) -> Reading[str]:
        """Where calls are hidden: behind the end of a reasoning, and headers that begin as a call's does."""
        first = self._syntax.opening + self._syntax.begin
        if self._channel is Channel.ANSWER:
            yield from self._reader.literal(first)
            return (yield from self._name())
        while True:
            yield from self._reader.until(first)
            with suppress(NotACall):
                return (yield from self._name())

    def _name(self) -> Reading[str]:
        return self._names[(yield from self._reader.one_of(self._names))]
