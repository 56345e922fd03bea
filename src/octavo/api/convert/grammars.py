"""What an answer is allowed to be, as a grammar that is known to work."""

from collections.abc import Callable
from functools import partial

import msgspec

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
    Recipe,
    answer_grammar,
    answer_or_calls_grammar,
    any_object_part,
    calls_grammar,
    grammar_part,
    regex_part,
    schema_part,
    text_with_calls_grammar,
)
from octavo.core.channels import ChannelFormat
from octavo.core.grammar import Grammar
from octavo.core.tools import ToolUse
from octavo.core.vocabulary import Vocabulary
from octavo.streaming.tool_formats import BY_NAME, ToolFormat

_encode = msgspec.json.Encoder(order="deterministic").encode

ConstrainedFormat = JsonObjectFormat | JsonSchemaFormat | RegexFormat | GrammarFormat


def format_recipe(format: ResponseFormat | None, channels: ChannelFormat, vocabulary: Vocabulary) -> Recipe | None:
    """None where the answer may be anything."""
    wanted = constraining(format)
    if wanted is None:
        return None
    key = _encode(wanted.model_dump()), channels
    return Recipe("response_format", key, lambda: answer_grammar(_part(wanted), channels, vocabulary))


def chat_recipe(
    wire: ChatCompletionRequest, use: ToolUse, channels: ChannelFormat, vocabulary: Vocabulary
) -> Recipe | None:
    """None where the answer may be anything. A form of the answer says nothing about one that must be calls."""
    format = None if use.is_forced else constraining(wire.response_format)
    if not use.tools:
        return format_recipe(format, channels, vocabulary)
    make = _with_calls(format, use, channels, BY_NAME[use.format], vocabulary)
    if make is None:
        return None
    tools = [(tool.name, tool.parameters, tool.is_strict) for tool in use.tools]
    form = format and format.model_dump()
    key = _encode((form, tools, use.is_forced, use.is_parallel)), use.format, channels
    return Recipe("response_format" if format else wire.functions_field, key, make)


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
    syntax, trigger, max_calls = tool_format.syntax, tool_format.trigger, MAX_CALLS if use.is_parallel else 1
    if use.is_forced:
        return partial(calls_grammar, syntax, use.tools, channels, vocabulary, max_calls=max_calls)
    if format is not None:
        return lambda: answer_or_calls_grammar(
            _part(format), syntax, use.tools, channels, vocabulary, max_calls=max_calls
        )
    if trigger and any(tool.is_strict for tool in use.tools):
        tools = [tool if tool.is_strict else tool.without_parameters for tool in use.tools]
        return partial(text_with_calls_grammar, trigger, syntax, tools, channels, vocabulary)
    return None


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
