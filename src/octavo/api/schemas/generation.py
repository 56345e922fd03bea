"""What both generation endpoints share on the wire."""

import re
from typing import Annotated, Any

from pydantic import Field, PlainValidator, ValidationInfo, WithJsonSchema, field_validator
from pydantic_core import PydanticCustomError

from octavo.api.schemas.common import MAX_INT, MIN_INT, WireRequest
from octavo.api.schemas.response_format import ResponseFormat
from octavo.api.shown import shown
from octavo.core.sampling import BAN_BIAS, FORCE_BIAS

_TOKEN_ID = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)


def _parse_stop(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    strings = [value] if isinstance(value, str) else value
    if not isinstance(strings, list) or not all(isinstance(string, str) for string in strings):
        raise PydanticCustomError("stop_type", "Input should be a string or a list of strings")
    if not all(strings):
        raise PydanticCustomError("stop_empty", "A stop string should have at least 1 character")
    return tuple(strings)


def _parse_logit_bias(value: Any) -> tuple[tuple[int, float], ...] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise PydanticCustomError("logit_bias_type", "Input should be an object of token ids and biases")
    return tuple((_token_id(key), _bias(key, bias)) for key, bias in value.items() if bias is not None)


def _token_id(key: str) -> int:
    if _TOKEN_ID.fullmatch(key) is None:
        message = "A key should be a token id in plain decimal digits; one is {key}"
        raise PydanticCustomError("logit_bias_key", message, {"key": shown(key)})
    return int(key)


def _bias(key: str, value: Any) -> float:
    if type(value) not in (int, float) or not BAN_BIAS <= value <= FORCE_BIAS:
        message = "A bias should be a number from -100 to 100; that of token {key} is {value}"
        raise PydanticCustomError("logit_bias_value", message, {"key": key, "value": shown(value)})
    return float(value)


Stop = Annotated[
    tuple[str, ...] | None,
    PlainValidator(_parse_stop),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "items": {"type": "string", "minLength": 1}},
                {"type": "null"},
            ]
        }
    ),
]
"""A string or a list of strings; none empty."""

LogitBias = Annotated[
    tuple[tuple[int, float], ...] | None,
    PlainValidator(_parse_logit_bias),
    WithJsonSchema(
        {
            "anyOf": [
                {
                    "type": "object",
                    "propertyNames": {"pattern": "^(0|[1-9][0-9]*)$"},
                    "additionalProperties": {
                        "anyOf": [{"type": "number", "minimum": BAN_BIAS, "maximum": FORCE_BIAS}, {"type": "null"}]
                    },
                },
                {"type": "null"},
            ]
        }
    ),
]
"""An object of token ids and biases; a bias of null is no bias."""


TokenIds = Annotated[list[Annotated[int, Field(ge=0)]], Field(fail_fast=True)]


class StreamOptions(WireRequest):
    include_usage: bool | None = Field(None, description="One more chunk, before the end, with the usage.")


class GenerationFields(WireRequest):
    """Fields of both generation endpoints. null stands for an absent field everywhere."""

    model: str = Field(description="Name of a served model or adapter, or model:adapter.")
    peft: str | None = Field(None, description="Id of an adapter of the model, with which it answers.")
    max_tokens: int | None = Field(None, ge=0, le=MAX_INT, description="Most tokens to generate for each choice.")
    max_completion_tokens: int | None = Field(None, ge=0, le=MAX_INT, description="Another name for max_tokens.")
    min_tokens: int | None = Field(None, ge=0, le=MAX_INT, description="Tokens before which no choice ends; default 0.")
    n: int | None = Field(None, ge=1, le=MAX_INT, description="Choices for each prompt; default 1.")
    temperature: float | None = Field(None, ge=0, le=2, description="Default 1; 0 is greedy.")
    top_p: float | None = Field(None, ge=0, le=1, description="Default 1, which is off; 0 is greedy.")
    min_p: float | None = Field(None, ge=0, le=1, description="Default 0, which is off.")
    top_k: int | None = Field(None, ge=-1, le=MAX_INT, description="Default 0, which is off, as is -1.")
    frequency_penalty: float | None = Field(None, ge=-2, le=2, description="Default 0.")
    presence_penalty: float | None = Field(None, ge=-2, le=2, description="Default 0.")
    repetition_penalty: float | None = Field(None, gt=0, description="Default 1, which is off.")
    logit_bias: LogitBias = Field(None, description="Token ids to numbers from -100 (ban) to 100 (force).")
    stop: Stop = Field(None, description="Strings that end a choice.")
    stop_token_ids: TokenIds | None = Field(None, description="Token ids that end a choice, also with ignore_eos.")
    include_stop_str_in_output: bool | None = Field(
        None, description="What ended a choice, of stop or stop_token_ids, is part of it; default false."
    )
    seed: int | None = Field(None, ge=MIN_INT, le=MAX_INT, description="Same seed, same request: same answer.")
    ignore_eos: bool | None = Field(None, description="Go on after an end-of-generation token.")
    loglikelihood: bool | None = Field(
        None, description="Log-probabilities of the prompt's tokens but the first, before those of the answer."
    )
    response_format: ResponseFormat | None = Field(None, description="What the answer may be; default any text.")
    stream: bool | None = Field(None, description="Answer with server-sent events.")
    stream_options: StreamOptions | None = Field(None, description="Only with stream: true.")
    user: str | None = Field(None, description="The end user on whose behalf the request is made.")
    log_prompt: bool | None = Field(
        None, description="Store the request and its answer in the prompt log, durably, before the answer ends."
    )

    @field_validator("max_completion_tokens")
    @classmethod
    def _check_same(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is not None and info.data.get("max_tokens") not in (None, value):
            raise PydanticCustomError("max_tokens_differ", "Input should equal max_tokens where both are given")
        return value

    @field_validator("min_tokens")
    @classmethod
    def _check_fits(cls, value: int | None, info: ValidationInfo) -> int | None:
        bounds = (info.data.get("max_tokens"), info.data.get("max_completion_tokens"))
        if value is not None and any(bound is not None and value > bound for bound in bounds):
            raise PydanticCustomError("min_tokens_above_max", "Input should be at most max_tokens")
        return value

    @field_validator("stream_options")
    @classmethod
    def _check_streams(cls, value: StreamOptions | None, info: ValidationInfo) -> StreamOptions | None:
        if value is not None and not info.data.get("stream"):
            raise PydanticCustomError("not_streamed", "Input should be given only with stream: true")
        return value

    @property
    def given_max_tokens(self) -> int | None:
        return self.max_tokens if self.max_tokens is not None else self.max_completion_tokens

    @property
    def includes_usage(self) -> bool:
        return self.stream_options is not None and bool(self.stream_options.include_usage)
