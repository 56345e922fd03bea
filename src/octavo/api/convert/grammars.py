"""What an answer is allowed to be, as a grammar that is known to work."""

import asyncio
from collections.abc import Callable
from functools import partial

from octavo.api.schemas.chat import ChatCompletionRequest
from octavo.api.schemas.response_format import (
    GrammarFormat,
    JsonObjectFormat,
    JsonSchemaFormat,
    RegexFormat,
    ResponseFormat,
    TextFormat,
)
from octavo.constraints import (
    MAX_CALLS,
    Part,
    answer_grammar,
    answer_or_calls_grammar,
    any_object_part,
    calls_grammar,
    check_grammar,
    grammar_part,
    regex_part,
    schema_part,
    text_with_calls_grammar,
)
from octavo.core.channels import ChannelFormat
from octavo.core.grammar import ANY_TEXT, Grammar
from octavo.core.limits import Limits
from octavo.core.tools import ToolUse
from octavo.core.vocabulary import Vocabulary
from octavo.errors import InvalidRequest, UnsupportedGrammar
from octavo.service import ServedModel
from octavo.streaming.tool_formats import ToolFormat

ConstrainedFormat = JsonObjectFormat | JsonSchemaFormat | RegexFormat | GrammarFormat


async def format_grammar(
    format: ResponseFormat | None, channels: ChannelFormat, vocabulary: Vocabulary, limits: Limits
) -> Grammar:
    """Raises UnsupportedGrammar."""
    wanted = constraining(format)
    if wanted is None:
        return ANY_TEXT
    return await _checked(
        lambda: answer_grammar(_part(wanted), channels, vocabulary), "response_format", vocabulary, limits
    )


async def chat_grammar(
    wire: ChatCompletionRequest, use: ToolUse, channels: ChannelFormat, model: ServedModel, limits: Limits
) -> Grammar:
    """Raises UnsupportedGrammar, and InvalidRequest for a response_format where the answer must be a call."""
    vocabulary = model.tokenizer.vocabulary
    if not use.tools:
        return await format_grammar(wire.response_format, channels, vocabulary, limits)
    field = "response_format" if constraining(wire.response_format) and not use.is_forced else wire.functions_field
    make = _with_calls(constraining(wire.response_format), use, channels, model.tool_format, vocabulary)
    return ANY_TEXT if make is None else await _checked(make, field, vocabulary, limits)


def constraining(format: ResponseFormat | None) -> ConstrainedFormat | None:
    """The format, unless any text has it."""
    return None if isinstance(format, TextFormat) else format


def _with_calls(
    format: ConstrainedFormat | None,
    use: ToolUse,
    channels: ChannelFormat,
    tool_format: ToolFormat,
    vocabulary: Vocabulary,
) -> Callable[[], Grammar] | None:
    """How the grammar of an answer is made in which there may or must be calls; None where it may be anything."""
    syntax, trigger, max_calls = tool_format.syntax, tool_format.trigger, MAX_CALLS if use.is_parallel else 1
    if use.is_forced:
        _check_alone(format)
        return partial(calls_grammar, syntax, use.tools, channels, vocabulary, max_calls=max_calls)
    if format is not None:
        return lambda: answer_or_calls_grammar(
            _part(format), syntax, use.tools, channels, vocabulary, max_calls=max_calls
        )
    if trigger and any(tool.is_strict for tool in use.tools):
        tools = [tool if tool.is_strict else tool.without_parameters for tool in use.tools]
        return partial(text_with_calls_grammar, trigger, syntax, tools, channels, vocabulary)
    return None


def _check_alone(format: ConstrainedFormat | None) -> None:
    if format is not None:
        message = f"Input should be of type text where the answer must be a call (given {format.type})"
        raise InvalidRequest(f"response_format: {message}.", param="response_format")


async def _checked(make: Callable[[], Grammar], field: str, vocabulary: Vocabulary, limits: Limits) -> Grammar:
    """The grammar that `make` makes of what the client gave in `field`; both take their time in a thread."""

    def checked() -> Grammar:
        grammar = make()
        check_grammar(grammar, vocabulary)
        return grammar

    try:
        async with asyncio.timeout(limits.max_compile_time):
            return await asyncio.to_thread(checked)
    except UnsupportedGrammar as error:
        raise UnsupportedGrammar(f"{field}: {error.message}", param=field) from error
    except TimeoutError as error:
        message = f"{field}: This takes more than {limits.max_compile_time:g} s to compile."
        raise UnsupportedGrammar(message, param=field) from error


def _part(format: ConstrainedFormat) -> Part:
    match format:
        case JsonObjectFormat():
            return any_object_part() if format.schema_ is None else schema_part(format.schema_)
        case JsonSchemaFormat():
            return schema_part(format.json_schema.schema_)
        case RegexFormat():
            return regex_part(format.pattern)
        case GrammarFormat():
            return grammar_part(format.grammar)
