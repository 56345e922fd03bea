"""A conversation, as a chat template sees it."""

from dataclasses import dataclass
from enum import StrEnum

from octavo.core.images import Image
from octavo.core.tools import ToolCall


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class PlacedImage:
    """An image in a message. place: characters of the content before it."""

    image: Image
    place: int


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. Text parts are already joined; a null content is an empty string.

    images: those that are shown with the content, in order.
    name, tool_call_id: passed on to the chat template as they came.
    tool_calls: what an assistant called beside what it said.
    reasoning: what an assistant thought before it said the content, where the client sent it back.
    """

    role: Role
    content: str
    name: str | None = None
    tool_call_id: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    images: tuple[PlacedImage, ...] = ()
