"""A conversation, as clients send it."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from octavo.api.schemas.common import WireRequest
from octavo.api.schemas.tools import GivenFunctionCall, GivenToolCall
from octavo.api.schemas.unions import member, told_by, type_of


class TextPart(WireRequest):
    type: Literal["text"] = "text"
    text: str


class ImageUrl(WireRequest):
    url: str = Field(description="data:image/TYPE;base64, with the file, or https:// or http:// from an allowed host.")
    detail: Literal["auto", "low", "high"] | None = Field(None, description="low: the image may be seen in few pixels.")


class ImagePart(WireRequest):
    type: Literal["image_url"] = "image_url"
    image_url: ImageUrl


def _content_kind(value: Any) -> str | None:
    return "text" if isinstance(value, str) else "parts" if isinstance(value, list) else None


def _part_kind(value: Any) -> str | None:
    """OctoAI's client leaves the type out, and the kinds' own fields are called like them."""
    if isinstance(value, dict) and "type" not in value:
        return next((kind for kind in ("text", "image_url") if kind in value), None)
    return type_of(value)


Part = Annotated[
    Annotated[TextPart, member("text")] | Annotated[ImagePart, member("image_url")],
    told_by(_part_kind, error_type="content_part_type", message="Input should be an object of type text or image_url"),
]
Content = Annotated[
    Annotated[str, member("text")] | Annotated[list[Part], Field(fail_fast=True), member("parts")],
    told_by(_content_kind, error_type="content_type", message="Input should be a string, null or a list of parts"),
]


class ChatMessage(WireRequest):
    """function_call and the role function: what there was before tool_calls and the role tool."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Content | None = None
    name: str | None = None
    tool_call_id: str | None = Field(None, description="Of the call whose result a message of role tool is.")
    tool_calls: list[GivenToolCall] | None = Field(None, fail_fast=True, description="What an assistant called.")
    function_call: GivenFunctionCall | None = Field(None, description="What an assistant called, without an id.")
    reasoning_content: str | None = Field(None, description="What an assistant thought before it said the content.")
    reasoning: str | None = Field(None, description="Another name for reasoning_content.")

    @field_validator("tool_calls", "function_call", "reasoning_content", "reasoning")
    @classmethod
    def _check_role(cls, value: Any, info: ValidationInfo) -> Any:
        if value and info.data.get("role", "assistant") != "assistant":
            raise PydanticCustomError("not_assistant", "Input should be given only in messages of role assistant")
        return value

    @field_validator("function_call")
    @classmethod
    def _check_one_call(cls, value: GivenFunctionCall | None, info: ValidationInfo) -> GivenFunctionCall | None:
        if value is not None and info.data.get("tool_calls"):
            raise PydanticCustomError("calls_twice", "Input should not be given beside tool_calls")
        return value

    @field_validator("reasoning")
    @classmethod
    def _check_same(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and info.data.get("reasoning_content") not in (None, value):
            raise PydanticCustomError("reasoning_differs", "Input should equal reasoning_content where both are given")
        return value

    @property
    def parts(self) -> Sequence[TextPart | ImagePart]:
        """Of content that is no string."""
        return self.content if isinstance(self.content, list) else ()

    @property
    def given_reasoning(self) -> str | None:
        return self.reasoning_content if self.reasoning_content is not None else self.reasoning
