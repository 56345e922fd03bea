"""Messages and tools as the values that chat templates know, which are those of OpenAI's API."""

from collections.abc import Mapping
from types import MappingProxyType

from octavo.core.messages import Message
from octavo.core.tools import Tool, ToolCall
from octavo.prompting.arguments import object_of
from octavo.prompting.tool_shape import ToolShape

_WHOLE: Mapping[str, object] = MappingProxyType({"description": "", "parameters": {"type": "object", "properties": {}}})


def message_value(message: Message, shape: ToolShape) -> dict[str, object]:
    optional: dict[str, object] = {
        "name": message.name,
        "tool_call_id": message.tool_call_id,
        # the names by which templates of different families look for it
        "reasoning_content": message.reasoning,
        "reasoning": message.reasoning,
        "thinking": message.reasoning,
        "tool_calls": [_call_value(call, shape) for call in message.tool_calls] or None,
    }
    given = {field: value for field, value in optional.items() if value is not None}
    is_null = shape.has_null_contents and message.tool_calls and not message.content
    return {"role": message.role.value, "content": None if is_null else message.content, **given}


def tool_value(tool: Tool, shape: ToolShape) -> dict[str, object]:
    definition = dict(tool.definition)
    if shape.has_whole_definitions:
        definition |= {key: value for key, value in _WHOLE.items() if definition.get(key) is None}
    return {"type": "function", "function": definition}


def _call_value(call: ToolCall, shape: ToolShape) -> dict[str, object]:
    arguments = object_of(call.arguments) if shape.has_object_arguments else call.arguments
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
