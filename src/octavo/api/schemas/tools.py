"""Functions that a model may call, and its calls."""

from typing import Annotated, Any, Literal

from pydantic import Field

from octavo.api.schemas.common import WireData, WireRequest, WireResponse
from octavo.api.schemas.unions import member, told_by, type_of


class FunctionDefinition(WireRequest):
    name: str = Field(pattern="^[a-zA-Z0-9_-]{1,64}$")
    description: str | None = None
    parameters: dict[str, Any] | None = Field(
        None, description="JSON schema of the arguments; default: there are none."
    )
    strict: bool | None = Field(
        None,
        description="Arguments of a call that the model chooses to make are valid under the parameters too, where the "
        "model's format marks the beginning of a call. Those of a call that it must make always are.",
    )

    @property
    def definition(self) -> WireData:
        """What a model is shown of it."""
        fields = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {name: value for name, value in fields.items() if value is not None}


class ToolDefinition(WireRequest):
    type: Literal["function"]
    function: FunctionDefinition


class FunctionName(WireRequest):
    name: str

    @property
    def names(self) -> frozenset[str]:
        return frozenset({self.name})


class NamedTool(WireRequest):
    type: Literal["function"]
    function: FunctionName

    @property
    def names(self) -> frozenset[str]:
        return self.function.names


class ToolSubset(WireRequest):
    mode: Literal["auto", "required"]
    tools: list[NamedTool] = Field(min_length=1, fail_fast=True)


class AllowedTools(WireRequest):
    """Some of the tools, of which the model still sees all."""

    type: Literal["allowed_tools"]
    allowed_tools: ToolSubset

    @property
    def names(self) -> frozenset[str]:
        return frozenset(tool.function.name for tool in self.allowed_tools.tools)

    @property
    def is_required(self) -> bool:
        return self.allowed_tools.mode == "required"


def _choice_kind(value: Any) -> str | None:
    return "word" if isinstance(value, str) else type_of(value)


def _call_kind(value: Any) -> str | None:
    return "word" if isinstance(value, str) else "function" if isinstance(value, dict) else None


ToolChoice = Annotated[
    Annotated[Literal["none", "auto", "required"], member("word")]
    | Annotated[NamedTool, member("function")]
    | Annotated[AllowedTools, member("allowed_tools")],
    told_by(
        _choice_kind,
        error_type="tool_choice_type",
        message="Input should be none, auto, required or an object of type function or allowed_tools",
    ),
]

FunctionChoice = Annotated[
    Annotated[Literal["none", "auto"], member("word")] | Annotated[FunctionName, member("function")],
    told_by(
        _call_kind,
        error_type="function_call_type",
        message="Input should be none, auto or an object with the name of a function",
    ),
]
"""What there was before ToolChoice."""


class GivenFunctionCall(WireRequest):
    """arguments: JSON text of an object; what is none is shown to the model as it is."""

    name: str
    arguments: str


class GivenToolCall(WireRequest):
    id: str
    type: Literal["function"] | None = None
    function: GivenFunctionCall


class FunctionCall(WireResponse):
    """arguments: JSON text of an object, unless the answer was cut within it."""

    name: str
    arguments: str


class ToolCall(WireResponse):
    id: str
    type: Literal["function"]
    function: FunctionCall


class FunctionCallDelta(WireResponse):
    """name: only in the first one of a call. arguments: a part; all of them, joined, are the text."""

    name: str | None = None
    arguments: str


class ToolCallDelta(WireResponse):
    """id, type: only in the first one of a call."""

    index: int
    id: str | None = None
    type: Literal["function"] | None = None
    function: FunctionCallDelta
