"""TextEvents to wire answers: the events of a stream, or their fold into one answer.

The models in `octavo.api.schemas` document these shapes; what is sent is encoded straight from plain data, because that
takes a small part of the time and happens for every token.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import msgspec

from octavo.api.calls import CallsForm
from octavo.api.event_bytes import ChunkEvents, sse_event
from octavo.api.event_size import event_size
from octavo.api.logprobs import LogprobsForm
from octavo.api.schemas.common import WireData
from octavo.api.usage import UsageCounter
from octavo.core.output import FinishReason, TextEvent
from octavo.core.tools import joined_calls

CHOICE_SIZE = 100
"""Bytes of a choice without its texts, about."""
_SHORT = 16 * 2**10
"""Bytes of a choice that take some tenths of a millisecond to encode."""


class AnswerShape(Protocol):
    """What differs between the endpoints, and between the forms that clients ask for."""

    id_prefix: str
    answer_object: str
    chunk_object: str

    def choice(self, whole: TextEvent) -> WireData:
        """A choice of an answer that is not streamed. whole: all events of the choice as one."""
        ...

    def chunk_choices(self, event: TextEvent, *, is_first: bool) -> list[WireData]:
        """The choices of the chunks that an event becomes, one a chunk. is_first: of the event's choice."""
        ...

    def text_choice(self, index: int, text: str) -> WireData:
        """The choice of the chunk that an event becomes which is not the first and only has text."""
        ...


class CompletionShape:
    id_prefix = "cmpl-"
    answer_object = "text_completion"
    chunk_object = "text_completion"

    def __init__(self, logprobs: LogprobsForm) -> None:
        self._logprobs = logprobs

    def choice(self, whole: TextEvent) -> WireData:
        return self._choice(whole, self._logprobs(whole.entries))

    def chunk_choices(self, event: TextEvent, *, is_first: bool) -> list[WireData]:
        logprobs = self._logprobs(event.entries) if event.entries else None
        if not event.text and logprobs is None and event.finish_reason is None:
            return []
        return [self._choice(event, logprobs)]

    def text_choice(self, index: int, text: str) -> WireData:
        return _completion(index, text)

    def _choice(self, event: TextEvent, logprobs: WireData | None) -> WireData:
        return _completion(event.index, event.text, logprobs, event.finish_reason)


class ChatShape:
    """Each delta says one thing: the role, reasoning, content, a part of a call, or nothing where the choice ends."""

    id_prefix = "chatcmpl-"
    answer_object = "chat.completion"
    chunk_object = "chat.completion.chunk"

    def __init__(self, logprobs: LogprobsForm, calls: CallsForm) -> None:
        self._logprobs = logprobs
        self._calls = calls

    def choice(self, whole: TextEvent) -> WireData:
        return {
            "index": whole.index,
            "message": self._message(whole),
            "logprobs": self._logprobs(whole.entries),
            "finish_reason": self._reason(whole),
        }

    def chunk_choices(self, event: TextEvent, *, is_first: bool) -> list[WireData]:
        logprobs = self._logprobs(event.entries) if event.entries else None
        choices = []
        if is_first:
            choices.append(_delta(event.index, {"role": "assistant", "content": ""}))
        if event.reasoning:
            choices.append(_delta(event.index, _reasoning(event.reasoning)))
        if event.text or logprobs is not None:
            choices.append(_delta(event.index, {"content": event.text}, logprobs))
        choices += [_delta(event.index, fields) for fields in map(self._calls.delta, event.tool_calls) if fields]
        if event.finish_reason is not None:
            choices.append(_delta(event.index, {}, finish_reason=self._reason(event)))
        return choices

    def text_choice(self, index: int, text: str) -> WireData:
        return _delta(index, {"content": text})

    def _message(self, whole: TextEvent) -> WireData:
        calls = joined_calls(whole.tool_calls)
        return {
            "role": "assistant",
            "content": None if calls and not whole.text else whole.text,
            **(_reasoning(whole.reasoning) if whole.reasoning else {}),
            **(self._calls.message(calls) if calls else {}),
        }

    def _reason(self, event: TextEvent) -> FinishReason | None:
        return self._calls.finish_reason if event.finish_reason is FinishReason.TOOL_CALLS else event.finish_reason


def _reasoning(text: str) -> WireData:
    """Under both names that clients look for."""
    return {"reasoning_content": text, "reasoning": text}


def _completion(
    index: int, text: str, logprobs: WireData | None = None, finish_reason: FinishReason | None = None
) -> WireData:
    return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": finish_reason}


def _delta(
    index: int, delta: WireData, logprobs: WireData | None = None, finish_reason: FinishReason | None = None
) -> WireData:
    return {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish_reason}


@dataclass(frozen=True, slots=True)
class AnswerHead:
    """What all chunks of an answer share. model: the name that the client asked for. created: Unix time in seconds."""

    id: str
    created: int
    model: str
    fingerprint: str

    def data(self, object_name: str) -> WireData:
        return {
            "id": self.id,
            "object": object_name,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
        }


class ChunkAssembler:
    """Events to the chunks of a stream, as server-sent events."""

    def __init__(self, head: AnswerHead, shape: AnswerShape, counter: UsageCounter, *, includes_usage: bool) -> None:
        self._head = head.data(shape.chunk_object)
        self._events = ChunkEvents({**self._head, "usage": None} if includes_usage else self._head)
        self._shape = shape
        self._counter = counter
        self._includes_usage = includes_usage
        self._text_events: dict[int, Callable[[str], bytes]] = {}  # of the choices that have begun

    def push(self, event: TextEvent) -> bytes:
        """The chunks that an event becomes: any number, also none."""
        self._counter.push(event)
        text_event = self._text_events.get(event.index)
        if text_event is not None and event.is_only_text:  # nearly all: encoding the rest anew would take twice as long
            return text_event(event.text)
        if text_event is None:
            self._text_events[event.index] = self._events.text_events(self._shape.text_choice(event.index, ""))
        choices = self._shape.chunk_choices(event, is_first=text_event is None)
        return b"".join([self._events.event(choice) for choice in choices])

    def flush(self) -> bytes:
        """The chunk after the last event, where the usage is asked for."""
        if not self._includes_usage:
            return b""
        return sse_event({**self._head, "choices": [], "usage": self._counter.flush()})


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """body: JSON. finish_reasons: of the choices that have ended, as the body says them."""

    body: bytes
    finish_reasons: tuple[str, ...]
    usage: WireData

    def with_error(self, error: WireData) -> bytes:
        """The body of an answer that this error ended."""
        return b'%b,"error":%b}' % (self.body.removesuffix(b"}"), msgspec.json.encode(error))


class AnswerAssembler:
    """Events to one answer."""

    def __init__(self, head: AnswerHead, shape: AnswerShape, counter: UsageCounter) -> None:
        self._head = head.data(shape.answer_object)
        self._shape = shape
        self._counter = counter
        self._choices: dict[int, _ChoiceAssembler] = {}
        self._whole: WholeAnswer | None = None
        self.size = 0
        """About so many bytes the answer has so far."""

    def push(self, event: TextEvent) -> None:
        self._counter.push(event)
        if event.index not in self._choices:
            self._choices[event.index] = _ChoiceAssembler(self._shape)
            self.size += CHOICE_SIZE
        size = event_size(event)
        self.size += size
        self._choices[event.index].push(event, size)

    def flush(self) -> WholeAnswer:
        """The answer, once every choice has ended; made once, however often it is asked for.

        Choice by choice, so that in a thread it keeps the others waiting for no more than one of them.
        """
        if self._whole is None:
            self._whole = self._assembled()
        return self._whole

    def _assembled(self) -> WholeAnswer:
        choices = [choice.flush() for _, choice in sorted(self._choices.items())]
        head = msgspec.json.encode(self._head).removesuffix(b"}")
        usage = self._counter.flush()
        bodies = b",".join([choice.body for choice in choices])
        body = b'%b,"choices":[%b],"usage":%b}' % (head, bodies, msgspec.json.encode(usage))
        reasons = tuple([choice.finish_reason for choice in choices if choice.finish_reason])
        return WholeAnswer(body, reasons, usage)


class _WholeChoice(NamedTuple):
    """body: JSON. finish_reason: as the body says it, None where the choice has not ended."""

    body: bytes
    finish_reason: str | None


class _ChoiceAssembler:
    """Events to one choice. A short one is encoded when it ends: an answer may have tens of thousands, whose events
    take many times the memory, and all at the end would keep others waiting."""

    __slots__ = ("_events", "_shape", "_size", "_whole")

    def __init__(self, shape: AnswerShape) -> None:
        self._shape = shape
        self._events: list[TextEvent] = []
        self._size = 0
        self._whole: _WholeChoice | None = None

    def push(self, event: TextEvent, size: int) -> None:
        """size: about so many bytes the event adds."""
        self._size += size
        self._events.append(event)
        if event.finish_reason is not None and self._size <= _SHORT:
            self.flush()

    def flush(self) -> _WholeChoice:
        if self._whole is None:
            choice = self._shape.choice(TextEvent.joined(self._events))
            self._whole = _WholeChoice(msgspec.json.encode(choice), choice["finish_reason"])
            self._events.clear()
        return self._whole
