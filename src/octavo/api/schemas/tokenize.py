"""POST /v1/tokenize and /v1/detokenize."""

from typing import Annotated

from pydantic import ConfigDict, Field, WithJsonSchema

from octavo.api.schemas.common import WireRequest, WireResponse


class TokenizeRequest(WireRequest):
    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "demo", "text": "Hello!"}]})

    model: str = Field(description="Name of a served model.")
    text: str = Field(description="The text; special tokens in it are found.")
    add_special_tokens: bool | None = Field(
        None, description="Default true: begin with the begin-of-sequence token where the model has one for texts."
    )


class TokenizeResponse(WireResponse):
    tokens: list[int]
    count: int


TokenId = Annotated[int, WithJsonSchema({"type": "integer", "minimum": 0})]
"""The vocabulary has the last word, also about those below 0."""


class DetokenizeRequest(WireRequest):
    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "demo", "tokens": [19556, 17]}]})

    model: str = Field(description="Name of a served model.")
    tokens: Annotated[list[TokenId], Field(fail_fast=True, description="Token ids; special tokens give their text.")]


class DetokenizeResponse(WireResponse):
    text: str
