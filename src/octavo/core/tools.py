"""Functions that a model may call, and its calls."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Tool:
    """definition: the function as the client describes it: name, description, parameters.

    is_strict: whether the arguments of a call that the model chooses to make must be valid under the parameters.
    """

    name: str
    definition: Mapping[str, Any]
    is_strict: bool = False

    @property
    def parameters(self) -> Mapping[str, Any]:
        """JSON schema of the arguments. A function without one takes none."""
        given = self.definition.get("parameters")
        return {"type": "object", "properties": {}, "additionalProperties": False} if given is None else given

    @property
    def without_parameters(self) -> "Tool":
        """The same function, which takes any object."""
        return Tool(self.name, {**self.definition, "parameters": {"type": "object"}})


@dataclass(frozen=True, slots=True)
class ToolCall:
    """arguments: JSON text, of an object unless a model was cut short while it wrote."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """What a call has got since the choice's previous event.

    index: of the call among the choice's calls. id, name: in the first delta of a call, empty in all others.
    arguments: a part of the JSON text; the parts of a call, joined, are all of it.
    """

    index: int
    id: str
    name: str
    arguments: str


def joined_calls(deltas: Iterable[ToolCallDelta]) -> tuple[ToolCall, ...]:
    """The calls that deltas, in order, are the parts of."""
    heads: list[ToolCallDelta] = []
    arguments: list[list[str]] = []
    for delta in deltas:
        if delta.index == len(heads):
            heads.append(delta)
            arguments.append([])
        arguments[delta.index].append(delta.arguments)
    return tuple(ToolCall(head.id, head.name, "".join(parts)) for head, parts in zip(heads, arguments, strict=True))


@dataclass(frozen=True, slots=True)
class CallSyntax:
    """How a model writes calls with JSON arguments:

        opening (begin name middle arguments end) separator (begin name middle arguments end) … closing

    All but the arguments are written as they stand here, control tokens by their names.

    is_repeatable: whether a second call may follow the first; where the first ends the generation, it may not.
    """

    begin: str
    middle: str
    end: str = ""
    separator: str = ""
    opening: str = ""
    closing: str = ""
    is_repeatable: bool = True

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.opening, self.begin, self.middle, self.end, self.separator, self.closing)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """Which calls an answer may hold, and how they are told from its text.

    tools: what may be called; no other name makes a call.
    format: name of the tool format that the model writes; see octavo.streaming.tool_formats.
    is_forced: the answer's grammar makes it calls, in the CallSyntax of the format, and nothing else.
    is_parallel: whether more than one call may be made. The answer ends with the first where not.
    reads_unmarked: whether plain JSON is a call, too, for models that forget their format.
    """

    tools: tuple[Tool, ...] = ()
    format: str = ""
    is_forced: bool = False
    is_parallel: bool = True
    reads_unmarked: bool = True


NO_TOOLS = ToolUse()
