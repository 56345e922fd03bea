"""What a chat request says about tools."""

from octavo.api.convert.grammars import constraining
from octavo.api.schemas.chat import ChatCompletionRequest
from octavo.api.schemas.tools import AllowedTools
from octavo.core.tools import NO_TOOLS, Tool, ToolUse
from octavo.errors import UnsupportedByModel
from octavo.service import ServedModel
from octavo.streaming.tool_formats import GENERIC, ToolFormat


def shown_tools(wire: ChatCompletionRequest) -> tuple[Tool, ...]:
    """The tools that the prompt describes."""
    if wire.given_choice == "none":
        return ()
    return tuple(
        Tool(function.name, function.definition, is_strict=bool(function.strict)) for function in wire.given_functions
    )


def tool_use(wire: ChatCompletionRequest, model: ServedModel) -> ToolUse:
    """Which of the shown tools may be called, whether one must, and how calls are told from text.

    Raises UnsupportedByModel where the model's format has another use for the name of one.
    """
    tools = shown_tools(wire)
    if not tools:
        return NO_TOOLS
    _check_free(tools, wire.functions_field, model)
    choice = wire.given_choice
    return ToolUse(
        tools if isinstance(choice, str) else tuple(tool for tool in tools if tool.name in choice.names),
        _written_format(model, is_forced=_is_forced(wire)).name,
        is_forced=_is_forced(wire),
        is_parallel=wire.is_parallel and not _is_named(wire),
        reads_unmarked=constraining(wire.response_format) is None,
    )


def _written_format(model: ServedModel, *, is_forced: bool) -> ToolFormat:
    """The model's own, unless a call that must be made would end the generation within itself."""
    vocabulary, own = model.tokenizer.vocabulary, model.tool_format
    ends = [vocabulary.control_texts.get(token, "") for token in vocabulary.eog_tokens]
    is_cut = any(end and end in text for end in ends for text in own.syntax.texts)
    return GENERIC if is_forced and is_cut else own


def _is_forced(wire: ChatCompletionRequest) -> bool:
    choice = wire.given_choice
    return choice.is_required if isinstance(choice, AllowedTools) else choice != "auto"


def _is_named(wire: ChatCompletionRequest) -> bool:
    """Whether one function is to be called, once."""
    return not isinstance(wire.given_choice, str | AllowedTools)


def _check_free(tools: tuple[Tool, ...], field: str, model: ServedModel) -> None:
    taken = next((tool.name for tool in tools if tool.name in model.tool_format.reserved_names), None)
    if taken is not None:
        message = f"{field}: This model writes {taken} for something other than a call; give the function another name."
        raise UnsupportedByModel(message, param=field)
