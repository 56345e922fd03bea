"""POST /v1/completions."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from octavo.api.schemas.common import GenerationFields, UsageStats, WireResponse
from octavo.core.output import FinishReason


def _parse_prompt(value: Any) -> tuple[str | tuple[int, ...], ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise PydanticCustomError("prompt_type", "Input should be a string, strings, token ids or lists of token ids")
    if not value:
        raise PydanticCustomError("prompt_empty", "Input should have at least 1 prompt")
    if _are_ids(value):
        return (tuple(value),)
    return tuple(_parse_one(part, type(value[0])) for part in value)


def _parse_one(part: Any, kind: type) -> str | tuple[int, ...]:
    if isinstance(part, str) and kind is str:
        return part
    if isinstance(part, list) and kind is list and _are_ids(part):
        if not part:
            raise PydanticCustomError("prompt_empty", "A list of token ids should have at least 1 token id")
        return tuple(part)
    raise PydanticCustomError("prompt_type", "Input should be all strings, all token ids or all lists of token ids")


def _are_ids(values: list[Any]) -> bool:
    return all(type(value) is int for value in values)


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
    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "demo", "prompt": "Once upon a time"}]})

    prompt: Prompt = Field(description="What to complete. Choices are ordered by prompt, then by sample.")


class CompletionChoice(WireResponse):
    index: int
    text: str
    logprobs: None
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
