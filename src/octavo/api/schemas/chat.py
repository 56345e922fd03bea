"""POST /v1/chat/completions."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from octavo.api.schemas.common import MAX_INT, GenerationFields, UsageStats, WireRequest, WireResponse
from octavo.api.schemas.logprobs import ChatLogprobs
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


SERVER_VARIABLES = ("bos_token", "eos_token", "messages", "tools")
"""Variables of a chat template that are not the client's to set."""


class ChatMessage(WireRequest):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content | None = None
    name: str | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = Field(None, description="What an assistant thought before it said the content.")
    reasoning: str | None = Field(None, description="Another name for reasoning_content.")

    @field_validator("reasoning_content", "reasoning")
    @classmethod
    def _check_reasoning(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value and info.data.get("role", "assistant") != "assistant":
            raise PydanticCustomError("reasoning_role", "Input should be given only in messages of role assistant")
        if value is not None and info.data.get("reasoning_content") not in (None, value):
            raise PydanticCustomError("reasoning_differs", "Input should equal reasoning_content where both are given")
        return value

    @property
    def given_reasoning(self) -> str | None:
        return self.reasoning_content if self.reasoning_content is not None else self.reasoning


class ChatCompletionRequest(GenerationFields):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"model": "demo", "messages": [{"role": "user", "content": "Hello!"}]},
                {
                    "model": "demo",
                    "messages": [{"role": "user", "content": "Hello!"}],
                    "max_tokens": 5,
                    "logprobs": True,
                    "top_logprobs": 2,
                },
            ]
        }
    )

    messages: list[ChatMessage] = Field(min_length=1, fail_fast=True, description="The conversation so far.")
    logprobs: bool | None = Field(None, description="Log-probabilities of the answer's tokens.")
    top_logprobs: int | None = Field(
        None, ge=0, le=MAX_INT, description="So many of the most probable tokens in each place; with logprobs: true."
    )
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = Field(
        None, description="How long to think, for the chat template; none: not at all."
    )
    chat_template_kwargs: dict[str, Any] | None = Field(None, description="Further variables of the chat template.")

    @field_validator("top_logprobs")
    @classmethod
    def _check_has_logprobs(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is not None and not info.data.get("logprobs"):
            raise PydanticCustomError("no_logprobs", "Input should be given only with logprobs: true")
        return value

    @field_validator("chat_template_kwargs")
    @classmethod
    def _check_free_names(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        taken = next((name for name in SERVER_VARIABLES if name in (value or {})), None)
        if taken is not None:
            message = "Input should not set {name}, which this server sets"
            raise PydanticCustomError("template_variable", message, {"name": taken})
        return value

    @property
    def shows_logprobs(self) -> bool:
        return bool(self.logprobs) or bool(self.loglikelihood)


class AssistantMessage(WireResponse):
    """reasoning_content, reasoning: the same text, what the model thought; absent where that is nothing."""

    role: Literal["assistant"]
    content: str
    reasoning_content: str | None = None
    reasoning: str | None = None


class ChatChoice(WireResponse):
    index: int
    message: AssistantMessage
    logprobs: ChatLogprobs | None
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
    reasoning_content: str | None = None
    reasoning: str | None = None


class ChatChunkChoice(WireResponse):
    index: int
    delta: ChatDelta
    logprobs: ChatLogprobs | None
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
