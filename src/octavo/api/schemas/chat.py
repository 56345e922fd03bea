"""POST /v1/chat/completions."""

from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from octavo.api.schemas.common import MAX_INT, UsageStats, WireResponse
from octavo.api.schemas.generation import GenerationFields
from octavo.api.schemas.logprobs import ChatLogprobs
from octavo.api.schemas.messages import ChatMessage
from octavo.api.schemas.tool_fields import ToolFields
from octavo.api.schemas.tools import FunctionCall, FunctionCallDelta, ToolCall, ToolCallDelta
from octavo.core.output import FinishReason

SERVER_VARIABLES = ("bos_token", "eos_token", "messages", "tools")
"""Variables of a chat template that are not the client's to set."""


class ChatCompletionRequest(ToolFields, GenerationFields):
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
    """content: null where the model called and said nothing.
    reasoning_content, reasoning: the same text, what the model thought; absent where that is nothing.
    tool_calls, or function_call where the request has functions: absent where nothing is called.
    """

    role: Literal["assistant"]
    content: str | None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[ToolCall] | None = None
    function_call: FunctionCall | None = None


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
    tool_calls: list[ToolCallDelta] | None = None
    function_call: FunctionCallDelta | None = None


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
