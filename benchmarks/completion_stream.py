"""One streamed completion, read event by event."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import msgspec


class Usage(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int

    def joined(self, other: Usage) -> Usage:
        """Of all choices: llama-server gives each choice of `n` a usage of its own, all of the same prompt."""
        return Usage(self.prompt_tokens, self.completion_tokens + other.completion_tokens)


class Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None


class StreamChoice(msgspec.Struct):
    text: str | None = None
    delta: Delta | None = None

    @property
    def new_text(self) -> str:
        """The text that this choice brings, of either endpoint."""
        if self.delta is not None:
            return self.delta.content or self.delta.reasoning_content or ""
        return self.text or ""


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
    texts: list[str] = field(default_factory=list)
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
        if event.usage is not None:
            self.usage = event.usage if self.usage is None else self.usage.joined(event.usage)
        if text := "".join(choice.new_text for choice in event.choices):
            self.text_times.append(now)
            self.texts.append(text)

    def finish(self) -> Completion:
        """The completion that was read. Raises CompletionError when it did not end, or brought no text."""
        if not self.is_done:
            raise CompletionError("the stream ended without [DONE]")
        if not self.text_times:
            raise CompletionError("the stream brought no text")
        return Completion(self.started, tuple(self.text_times), "".join(self.texts), self.usage)


@dataclass(frozen=True, slots=True)
class Completion:
    """A completion that was received whole. The text of several choices is in the order in which it came."""

    started: float
    text_times: tuple[float, ...]
    text: str
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

    def num_tokens_between(self, start: float, end: float) -> float:
        """Tokens that came after start and not after end; a chunk counts as its even share of all tokens."""
        num_chunks = sum(start < time <= end for time in self.text_times)
        return num_chunks * self.num_tokens / len(self.text_times)
