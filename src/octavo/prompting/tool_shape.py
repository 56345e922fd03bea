"""In what shape a chat template takes tools, calls and results."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ToolShape:
    """What a template has a place for, and what it wants there.

    knows_tools, knows_calls, knows_results: what it shows. The rest is written into texts; see tool_prompt.
    takes_system: whether it shows a system message.
    has_parallel_calls: several calls in a message, rather than one and its result before the next.
    has_object_arguments: arguments as what their JSON says, rather than as JSON text.
    has_null_contents: None, rather than an empty text, where an assistant calls and says nothing.
    has_short_ids: ids of nine letters and digits, as Mistral's templates demand.
    has_whole_definitions: functions always with a description and parameters, whether the client gives them or not.
    """

    knows_tools: bool = True
    knows_calls: bool = True
    knows_results: bool = True
    takes_system: bool = True
    has_parallel_calls: bool = True
    has_object_arguments: bool = True
    has_null_contents: bool = False
    has_short_ids: bool = False
    has_whole_definitions: bool = False


NO_TOOL_SHAPE = ToolShape(knows_tools=False, knows_calls=False, knows_results=False)
"""Of a template that knows nothing of tools."""
