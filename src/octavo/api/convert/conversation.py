"""Messages of the wire to those that chat templates see."""

from collections.abc import Sequence

from octavo.api.schemas.messages import ChatMessage, Content, ImagePart
from octavo.core.messages import Message, Role
from octavo.core.tools import ToolCall
from octavo.errors import NotYetSupported

_ROLES = {**{str(role): role for role in Role}, "developer": Role.SYSTEM, "function": Role.TOOL}
"""By the wire's names, two of which are other names of roles."""


def conversation(wires: Sequence[ChatMessage]) -> tuple[Message, ...]:
    """A function_call and the message of role function that answers it become a call and its result, with an id of
    their own. Raises NotYetSupported for images."""
    messages = []
    num_unnamed = 0
    for wire in wires:
        num_unnamed += wire.function_call is not None
        messages.append(_message(wire, num_unnamed))
    return tuple(messages)


def _message(wire: ChatMessage, num_unnamed: int) -> Message:
    return Message(
        role=_ROLES[wire.role],
        content=_text(wire.content),
        name=wire.name,
        tool_call_id=_made_id(num_unnamed) if wire.role == "function" else wire.tool_call_id,
        reasoning=wire.given_reasoning,
        tool_calls=_calls(wire, num_unnamed),
    )


def _calls(wire: ChatMessage, num_unnamed: int) -> tuple[ToolCall, ...]:
    if wire.function_call is not None:
        return (ToolCall(_made_id(num_unnamed), wire.function_call.name, wire.function_call.arguments),)
    if not wire.tool_calls:
        return ()
    return tuple(ToolCall(call.id, call.function.name, call.function.arguments) for call in wire.tool_calls)


def _made_id(number: int) -> str:
    """Nine letters and digits: some families' templates demand so many."""
    return f"call{number:05}"


def _text(content: Content | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if any(isinstance(part, ImagePart) for part in content):
        message = "messages: parts of type image_url are not yet supported; send text parts."
        raise NotYetSupported(message, param="messages")
    return "".join(part.text for part in content if not isinstance(part, ImagePart))
