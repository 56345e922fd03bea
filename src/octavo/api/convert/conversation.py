"""Messages of the wire to those that chat templates see."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from octavo.api.schemas.messages import ChatMessage, ImagePart, ImageUrl, TextPart
from octavo.core.images import Image
from octavo.core.messages import Message, PlacedImage, Role
from octavo.core.tools import ToolCall
from octavo.service import ImageLink

Images = Mapping[ImageLink, Image]
NO_IMAGES: Images = MappingProxyType({})

_ROLES = {**{str(role): role for role in Role}, "developer": Role.SYSTEM, "function": Role.TOOL}
"""By the wire's names, two of which are other names of roles."""


def image_links(wires: Sequence[ChatMessage]) -> list[ImageLink]:
    """Of all images, in order."""
    lists = [wire.content for wire in wires if isinstance(wire.content, list)]
    return [_link(part.image_url) for parts in lists for part in parts if isinstance(part, ImagePart)]


def conversation(wires: Sequence[ChatMessage], images: Images = NO_IMAGES) -> tuple[Message, ...]:
    """A function_call and the message of role function that answers it become a call and its result, with an id of
    their own. images: one for each link."""
    messages = []
    num_unnamed = 0
    for wire in wires:
        num_unnamed += wire.function_call is not None
        messages.append(_message(wire, num_unnamed, images))
    return tuple(messages)


def _message(wire: ChatMessage, num_unnamed: int, images: Images) -> Message:
    return Message(
        role=_ROLES[wire.role],
        content=_content(wire),
        name=wire.name,
        tool_call_id=_made_id(num_unnamed) if wire.role == "function" else wire.tool_call_id,
        reasoning=wire.given_reasoning,
        tool_calls=_calls(wire, num_unnamed),
        images=tuple(_placed(wire, images)),
    )


def _content(wire: ChatMessage) -> str:
    if isinstance(wire.content, str):
        return wire.content
    return "".join([part.text for part in wire.parts if isinstance(part, TextPart)])


def _placed(wire: ChatMessage, images: Images) -> Iterator[PlacedImage]:
    place = 0
    for part in wire.parts:
        if isinstance(part, TextPart):
            place += len(part.text)
        elif isinstance(part, ImagePart):
            yield PlacedImage(images[_link(part.image_url)], place)


def _link(url: ImageUrl) -> ImageLink:
    return ImageLink(url.url, is_coarse=url.detail == "low")


def _calls(wire: ChatMessage, num_unnamed: int) -> tuple[ToolCall, ...]:
    if wire.function_call is not None:
        return (ToolCall(_made_id(num_unnamed), wire.function_call.name, wire.function_call.arguments),)
    if not wire.tool_calls:
        return ()
    return tuple(ToolCall(call.id, call.function.name, call.function.arguments) for call in wire.tool_calls)


def _made_id(number: int) -> str:
    """Nine letters and digits: some families' templates demand so many."""
    return f"call{number:05}"
