"""POST /v1/chat/completions."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag

from octavo.api.schemas.common import GenerationFields, UsageStats, WireRequest, WireResponse
from octavo.core.output import FinishReason


class TextPart(WireRequest):
    type: Literal["text"]
    text: str


class ImagePart(WireRequest):
    """Part of the documented API; this version refuses it."""

    type: Literal["image_url"]


def _content_kind(value: Any) -> str | None:
    return "text" if isinstance(value, str) else "parts" if isinstance(value, list) else None


Parts = Annotated[list[Annotated[TextPart | ImagePart, Field(discriminator="type")]], Field(fail_fast=True)]
Content = Annotated[
    Annotated[str, Tag("text")] | Annotated[Parts, Tag("parts")],
    Discriminator(
        _content_kind,
        custom_error_type="content_type",
        custom_error_message="Input should be a string, null or a list of parts",
    ),
]


class ChatMessage(WireRequest):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content | None = None
    name: str | None = None
    tool_call_id: str | None = None


class ChatCompletionRequest(GenerationFields):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"model": "demo", "messages": [{"role": "user", "content": "Hello!"}]}]}
    )

    messages: list[ChatMessage] = Field(min_length=1, fail_fast=True, description="The conversation so far.")


class AssistantMessage(WireResponse):
    role: Literal["assistant"]
    content: str


class ChatChoice(WireResponse):
    index: int
    message: AssistantMessage
    logprobs: None
    finish_reason: FinishReason


class ChatCompletionResponse(WireResponse):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[ChatChoice]
    usage: UsageStats


class ChatDelta(WireResponse):
    role: Literal["assistant"] | None = None
    content: str | None = None


class ChatChunkChoice(WireResponse):
    index: int
    delta: ChatDelta
    logprobs: None
    finish_reason: FinishReason | None


class ChatCompletionChunk(WireResponse):
    """One event of a streamed answer. It has a usage only where stream_options ask for it."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[ChatChunkChoice]
    usage: UsageStats | None = None
