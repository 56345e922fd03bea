"""What a chat request says about tools."""

from octavo.api.schemas.tool_fields import ToolFields
from octavo.api.schemas.tools import AllowedTools
from octavo.core.tools import NO_TOOLS, Tool, ToolUse
from octavo.service import ServedModel


def shown_tools(wire: ToolFields) -> tuple[Tool, ...]:
    """The tools that the prompt describes."""
    if wire.given_choice == "none":
        return ()
    return tuple(
        Tool(function.name, function.definition, is_strict=bool(function.strict)) for function in wire.given_functions
    )


def tool_use(wire: ToolFields, model: ServedModel) -> ToolUse:
    """Which of the shown tools may be called, and whether one must."""
    tools = shown_tools(wire)
    if not tools:
        return NO_TOOLS
    format, choice = model.tool_format.name, wire.given_choice
    if isinstance(choice, str):
        return ToolUse(tools, format, is_forced=choice == "required", is_parallel=wire.is_parallel)
    chosen = tuple(tool for tool in tools if tool.name in choice.names)
    if isinstance(choice, AllowedTools):
        return ToolUse(chosen, format, is_forced=choice.is_required, is_parallel=wire.is_parallel)
    return ToolUse(chosen, format, is_forced=True, is_parallel=False)
