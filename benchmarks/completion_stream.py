"""One streamed completion, read event by event."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import msgspec


class Usage(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int


class Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None


class StreamChoice(msgspec.Struct):
    text: str | None = None
    delta: Delta | None = None

    @property
    def has_text(self) -> bool:
        """Whether this choice brings text of either endpoint."""
        return bool(self.text or (self.delta and (self.delta.content or self.delta.reasoning_content)))


class Event(msgspec.Struct):
    """What is read of a stream's event; all else is skipped unread."""

    choices: list[StreamChoice] = []
    usage: Usage | None = None
    error: Any = None


class CompletionError(Exception):
    """A completion that failed; the message says how."""


@dataclass(slots=True)
class StreamReader:
    """Push the bytes of one event stream; times are seconds of time.perf_counter."""

    started: float
    text_times: list[float] = field(default_factory=list)
    usage: Usage | None = None
    is_done: bool = False
    _tail: bytes = b""
    _decoder: msgspec.json.Decoder[Event] = field(default_factory=lambda: msgspec.json.Decoder(Event))

    def push(self, data: bytes) -> None:
        """Read the lines that are complete. Raises CompletionError for an error event."""
        now = time.perf_counter()
        *lines, self._tail = (self._tail + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._read(line[5:].strip(), now)

    def _read(self, payload: bytes, now: float) -> None:
        if payload == b"[DONE]":
            self.is_done = True
            return
        event = self._decoder.decode(payload)
        if event.error is not None:
            raise CompletionError(f"error event: {event.error}")
        self.usage = event.usage or self.usage
        if any(choice.has_text for choice in event.choices):
            self.text_times.append(now)

    def finish(self) -> Completion:
        """The completion that was read. Raises CompletionError when it did not end, or brought no text."""
        if not self.is_done:
            raise CompletionError("the stream ended without [DONE]")
        if not self.text_times:
            raise CompletionError("the stream brought no text")
        return Completion(self.started, tuple(self.text_times), self.usage)


@dataclass(frozen=True, slots=True)
class Completion:
    """A completion that was received whole."""

    started: float
    text_times: tuple[float, ...]
    usage: Usage | None

    @property
    def num_tokens(self) -> int:
        """Generated tokens by the server's count, or the number of chunks where it gave none."""
        return self.usage.completion_tokens if self.usage else len(self.text_times)

    @property
    def time_to_first_token(self) -> float:
        """Seconds from the request's start, the connection's opening included, to the first text."""
        return self.text_times[0] - self.started

    @property
    def time_per_output_token(self) -> float | None:
        """Mean seconds between tokens after the first; None for a single token."""
        if self.num_tokens < 2:
            return None
        return (self.text_times[-1] - self.text_times[0]) / (self.num_tokens - 1)

    @property
    def largest_gap(self) -> float:
        """Most seconds between two chunks of text; 0 for a single chunk."""
        pairs = zip(self.text_times, self.text_times[1:], strict=False)
        return max((later - earlier for earlier, later in pairs), default=0.0)
