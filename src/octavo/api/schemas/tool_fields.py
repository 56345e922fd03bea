"""The fields about tools of a chat request."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from octavo.api.schemas.common import WireRequest
from octavo.api.schemas.tools import FunctionChoice, FunctionDefinition, ToolChoice, ToolDefinition
from octavo.api.shown import shown


class ToolFields(WireRequest):
    tools: list[ToolDefinition] | None = Field(None, fail_fast=True, description="Functions that the model may call.")
    tool_choice: ToolChoice | None = Field(
        None, description="Whether the model may call (auto), must (required, or a function's name) or must not (none)."
    )
    parallel_tool_calls: bool | None = Field(
        None, description="Whether an answer may have several calls; default true."
    )
    functions: list[FunctionDefinition] | None = Field(
        None, fail_fast=True, description="An older form of tools; an answer then has at most one call."
    )
    function_call: FunctionChoice | None = Field(None, description="An older form of tool_choice, for functions.")

    @field_validator("tools")
    @classmethod
    def _check_tool_names(cls, value: list[ToolDefinition] | None) -> list[ToolDefinition] | None:
        _check_distinct([tool.function for tool in value or ()])
        return value

    @field_validator("tool_choice")
    @classmethod
    def _check_tool_choice(cls, value: ToolChoice | None, info: ValidationInfo) -> ToolChoice | None:
        if value is not None and "tools" in info.data:
            _check_offered(value, [tool.function for tool in info.data["tools"] or ()], "tools")
        return value

    @field_validator("functions", "function_call")
    @classmethod
    def _check_one_form(cls, value: Any, info: ValidationInfo) -> Any:
        if value and any(info.data.get(name) for name in ("tools", "tool_choice")):
            raise PydanticCustomError("functions_and_tools", "Input should not be given beside tools or tool_choice")
        return value

    @field_validator("functions")
    @classmethod
    def _check_function_names(cls, value: list[FunctionDefinition] | None) -> list[FunctionDefinition] | None:
        _check_distinct(value or ())
        return value

    @field_validator("function_call")
    @classmethod
    def _check_function_call(cls, value: FunctionChoice | None, info: ValidationInfo) -> FunctionChoice | None:
        if value is not None and "functions" in info.data:
            _check_offered(value, info.data["functions"] or (), "functions")
        return value

    @property
    def given_functions(self) -> Sequence[FunctionDefinition]:
        """In whichever form they were given."""
        return [tool.function for tool in self.tools] if self.tools else self.functions or ()

    @property
    def functions_field(self) -> str:
        """Where they were given."""
        return "functions" if self.has_older_form else "tools"

    @property
    def given_choice(self) -> ToolChoice | FunctionChoice:
        return self.tool_choice or self.function_call or "auto"

    @property
    def is_parallel(self) -> bool:
        return self.parallel_tool_calls is not False and not self.has_older_form

    @property
    def has_older_form(self) -> bool:
        """Whether the answer, too, is to be in the form that was there before tools."""
        return bool(self.functions)


def _check_distinct(functions: Sequence[FunctionDefinition]) -> None:
    uses = Counter(function.name for function in functions)
    double = next((name for name, number in uses.items() if number > 1), None)
    if double is not None:
        message = "Input should have functions of different names; more than one is {name}"
        raise PydanticCustomError("function_names", message, {"name": shown(double)})


def _check_offered(choice: ToolChoice | FunctionChoice, functions: Sequence[FunctionDefinition], field: str) -> None:
    """The choice can be made. field: where the functions are."""
    if choice in ("none", "auto"):
        return
    if not functions:
        raise PydanticCustomError("nothing_to_call", "Input should be given only with {field}", {"field": field})
    offered = {function.name for function in functions}
    unknown = next((name for name in _names(choice) if name not in offered), None)
    if unknown is not None:
        message = "Input should name functions of {field}; none of them is {name}"
        raise PydanticCustomError("unknown_function", message, {"field": field, "name": shown(unknown)})


def _names(choice: ToolChoice | FunctionChoice) -> Sequence[str]:
    return () if isinstance(choice, str) else sorted(choice.names)
