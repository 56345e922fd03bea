"""Calls in the wire's two forms."""

from collections.abc import Sequence
from typing import Protocol

from octavo.api.schemas.common import WireData
from octavo.core.output import FinishReason
from octavo.core.tools import ToolCall, ToolCallDelta


class CallsForm(Protocol):
    """How an answer tells its calls. finish_reason: of an answer that ended because of them."""

    finish_reason: FinishReason

    def message(self, calls: Sequence[ToolCall]) -> WireData:
        """Fields of a message with these calls, at least one."""
        ...

    def delta(self, delta: ToolCallDelta) -> WireData:
        """Fields of a message's delta; none where the form has no place for the call."""
        ...


class ToolCallsForm:
    finish_reason = FinishReason.TOOL_CALLS

    def message(self, calls: Sequence[ToolCall]) -> WireData:
        return {
            "tool_calls": [
                {"id": call.id, "type": "function", "function": _function(call.name, call.arguments)} for call in calls
            ]
        }

    def delta(self, delta: ToolCallDelta) -> WireData:
        head = {"id": delta.id, "type": "function"} if delta.id else {}
        return {"tool_calls": [{"index": delta.index, **head, "function": _function(delta.name, delta.arguments)}]}


class FunctionCallForm:
    """The older one, which tells an answer's first call and has no place for others."""

    finish_reason = FinishReason.FUNCTION_CALL

    def message(self, calls: Sequence[ToolCall]) -> WireData:
        first = calls[0]
        return {"function_call": _function(first.name, first.arguments)}

    def delta(self, delta: ToolCallDelta) -> WireData:
        return {"function_call": _function(delta.name, delta.arguments)} if delta.index == 0 else {}


def _function(name: str, arguments: str) -> WireData:
    """name: empty but in the first delta of a call."""
    return {"name": name, "arguments": arguments} if name else {"arguments": arguments}
