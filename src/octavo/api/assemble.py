"""TextEvents to wire answers: chunks of a stream, or their fold into one answer.

The models in `octavo.api.schemas` document these shapes; what is sent is encoded straight from plain data, because that
takes a small part of the time and happens for every token.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from octavo.core.output import FinishReason, TextEvent, Usage

WireData = dict[str, Any]


class AnswerShape(Protocol):
    """What differs between the endpoints."""

    id_prefix: str
    answer_object: str
    chunk_object: str

    def choice(self, index: int, text: str, finish_reason: FinishReason) -> WireData:
        """A whole choice of an answer that is not streamed."""
        ...

    def chunk_choices(self, event: TextEvent, *, is_first: bool) -> list[WireData]:
        """The choices of the chunks that an event becomes, one a chunk. is_first: of the event's choice."""
        ...


class CompletionShape:
    id_prefix = "cmpl-"
    answer_object = "text_completion"
    chunk_object = "text_completion"

    def choice(self, index: int, text: str, finish_reason: FinishReason | None) -> WireData:
        return {"index": index, "text": text, "logprobs": None, "finish_reason": finish_reason}

    def chunk_choices(self, event: TextEvent, *, is_first: bool) -> list[WireData]:
        if not event.text and event.finish_reason is None:
            return []
        return [self.choice(event.index, event.text, event.finish_reason)]


class ChatShape:
    id_prefix = "chatcmpl-"
    answer_object = "chat.completion"
    chunk_object = "chat.completion.chunk"

    def choice(self, index: int, text: str, finish_reason: FinishReason) -> WireData:
        message = {"role": "assistant", "content": text}
        return {"index": index, "message": message, "logprobs": None, "finish_reason": finish_reason}

    def chunk_choices(self, event: TextEvent, *, is_first: bool) -> list[WireData]:
        choices = []
        if is_first:
            choices.append(_delta(event.index, {"role": "assistant", "content": ""}))
        if event.text:
            choices.append(_delta(event.index, {"content": event.text}))
        if event.finish_reason is not None:
            choices.append(_delta(event.index, {}, event.finish_reason))
        return choices


def _delta(index: int, delta: WireData, finish_reason: FinishReason | None = None) -> WireData:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


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
    """Events to the chunks of a stream."""

    def __init__(self, head: AnswerHead, shape: AnswerShape, *, num_prompt_tokens: int, includes_usage: bool) -> None:
        self._head = head.data(shape.chunk_object)
        if includes_usage:
            self._head["usage"] = None
        self._shape = shape
        self._includes_usage = includes_usage
        self._num_prompt_tokens = num_prompt_tokens
        self._num_tokens = 0
        self._begun: set[int] = set()

    def push(self, event: TextEvent) -> list[WireData]:
        self._num_tokens += event.num_tokens
        is_first = event.index not in self._begun
        self._begun.add(event.index)
        return [{**self._head, "choices": [c]} for c in self._shape.chunk_choices(event, is_first=is_first)]

    def flush(self) -> list[WireData]:
        """The chunk after the last event, where the usage is asked for."""
        if not self._includes_usage:
            return []
        return [{**self._head, "choices": [], "usage": usage_data(Usage(self._num_prompt_tokens, self._num_tokens))}]


class AnswerAssembler:
    """Events to one answer."""

    def __init__(self, head: AnswerHead, shape: AnswerShape, *, num_prompt_tokens: int) -> None:
        self._head = head.data(shape.answer_object)
        self._shape = shape
        self._num_prompt_tokens = num_prompt_tokens
        self._num_tokens = 0
        self._texts: dict[int, list[str]] = {}
        self._reasons: dict[int, FinishReason] = {}

    def push(self, event: TextEvent) -> None:
        self._num_tokens += event.num_tokens
        self._texts.setdefault(event.index, []).append(event.text)
        if event.finish_reason is not None:
            self._reasons[event.index] = event.finish_reason

    def flush(self) -> WireData:
        """The answer, once every choice has ended."""
        choices = [self._shape.choice(i, "".join(self._texts[i]), self._reasons[i]) for i in sorted(self._texts)]
        usage = usage_data(Usage(self._num_prompt_tokens, self._num_tokens))
        return {**self._head, "choices": choices, "usage": usage}


def usage_data(usage: Usage) -> WireData:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }
