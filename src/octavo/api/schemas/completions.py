"""POST /v1/completions."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, PlainValidator, ValidationInfo, WithJsonSchema, field_validator
from pydantic_core import PydanticCustomError

from octavo.api.schemas.common import MAX_INT, UsageStats, WireResponse
from octavo.api.schemas.generation import GenerationFields
from octavo.api.schemas.logprobs import CompletionLogprobs
from octavo.core.output import FinishReason


def _parse_prompt(value: Any) -> tuple[str | tuple[int, ...], ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise PydanticCustomError("prompt_type", "Input should be a string, strings, token ids or lists of token ids")
    if not value:
        raise PydanticCustomError("prompt_empty", "Input should have at least 1 prompt")
    if _are_all(int, value):
        return (tuple(value),)
    if _are_all(str, value):
        return tuple(value)
    if _are_all(list, value) and all(_are_all(int, part) for part in value):
        if not all(value):
            raise PydanticCustomError("prompt_empty", "A list of token ids should have at least 1 token id")
        return tuple(map(tuple, value))
    raise PydanticCustomError("prompt_type", "Input should be all strings, all token ids or all lists of token ids")


def _are_all(kind: type, values: list[Any]) -> bool:
    """Without a loop of our own: there may be a million of them."""
    return {kind}.issuperset(map(type, values))


Prompt = Annotated[
    tuple[str | tuple[int, ...], ...],
    PlainValidator(_parse_prompt),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {"type": "array", "minItems": 1, "items": {"type": "string"}},
                {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0}},
                {
                    "type": "array",
                    "minItems": 1,
                    "items": {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0}},
                },
            ]
        }
    ),
]
"""One prompt or several, each as text or as token ids."""


class CompletionRequest(GenerationFields):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"model": "demo", "prompt": "Once upon a time"},
                {"model": "demo", "prompt": "The fox is quick.", "echo": True, "logprobs": 2, "max_tokens": 0},
            ]
        }
    )

    prompt: Prompt = Field(description="What to complete. Choices are ordered by prompt, then by sample.")
    echo: bool | None = Field(None, description="Each choice begins with its prompt.")
    suffix: str | None = Field(None, description="What follows the gap that is to be filled; not with echo.")
    logprobs: int | None = Field(
        None, ge=0, le=MAX_INT, description="Log-probabilities of the tokens, and of so many others in their places."
    )
    best_of: int | None = Field(
        None, ge=1, le=MAX_INT, description="Candidates for each prompt, of which the n most probable are given back."
    )

    @field_validator("suffix")
    @classmethod
    def _check_not_echoed(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and info.data.get("echo"):
            raise PydanticCustomError("suffix_echoed", "Input should not be given with echo: true")
        return value

    @field_validator("best_of")
    @classmethod
    def _check_candidates(cls, value: int | None, info: ValidationInfo) -> int | None:
        n = info.data.get("n") or 1
        if value is not None and value < n:
            raise PydanticCustomError("best_of_below_n", "Input should be at least n, which is {n}", {"n": n})
        if value is not None and value > n and info.data.get("stream"):
            raise PydanticCustomError("best_of_streamed", "Input should equal n, which is {n}, in a stream", {"n": n})
        return value

    @property
    def shows_logprobs(self) -> bool:
        return self.logprobs is not None or bool(self.loglikelihood)


class CompletionChoice(WireResponse):
    index: int
    text: str
    logprobs: CompletionLogprobs | None
    finish_reason: FinishReason | None


class CompletionResponse(WireResponse):
    """The answer, and the shape of each chunk of a streamed one (which has a usage only where it is asked for)."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[CompletionChoice]
    usage: UsageStats | None = None
