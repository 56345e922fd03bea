"""What the schemas of requests allow and this server does not."""

from typing import Any

import msgspec

from octavo.api.convert.conversation import image_links
from octavo.api.json_structure import at_most, nesting
from octavo.api.schemas.chat import ChatCompletionRequest
from octavo.api.schemas.completions import CompletionRequest
from octavo.api.schemas.generation import GenerationFields
from octavo.api.schemas.response_format import (
    GrammarFormat,
    JsonObjectFormat,
    JsonSchemaFormat,
    RegexFormat,
    ResponseFormat,
)
from octavo.core.limits import Limits
from octavo.errors import InvalidRequest


def check_limits(wire: GenerationFields, limits: Limits) -> None:
    """Raises InvalidRequest, before anything is done for the request."""
    _check_most("n", wire.n or 1, limits.max_n, "samples")
    stop = wire.stop or ()
    _check_most("stop", len(stop), limits.max_stop_strings, "strings")
    _check_most("stop", max(map(len, stop), default=0), limits.max_stop_length, "characters in a string")
    _check_most("stop_token_ids", len(wire.stop_token_ids or ()), limits.max_stop_tokens, "token ids")
    _check_definition("response_format", _definition(wire.response_format), limits)
    if isinstance(wire, CompletionRequest):
        _check_completion(wire, limits)
    if isinstance(wire, ChatCompletionRequest):
        _check_chat(wire, limits)


def _check_completion(wire: CompletionRequest, limits: Limits) -> None:
    _check_most("prompt", len(wire.prompt), limits.max_prompts, "prompts")
    _check_most("logprobs", wire.logprobs or 0, limits.max_top_logprobs, "tokens in a place")
    _check_most("best_of", wire.best_of or 1, limits.max_n, "candidates")


def _check_chat(wire: ChatCompletionRequest, limits: Limits) -> None:
    _check_most("top_logprobs", wire.top_logprobs or 0, limits.max_top_logprobs, "tokens in a place")
    _check_most("messages", len(wire.messages), limits.max_messages, "messages")
    _check_most("messages", len(image_links(wire.messages)), limits.max_images, "images")
    _check_functions(wire, limits)


def _check_functions(wire: ChatCompletionRequest, limits: Limits) -> None:
    """Looks at no more schemas than are needed to tell that they are too large together."""
    field, size = wire.functions_field, 0
    _check_most(field, len(wire.given_functions), limits.max_tools, "functions")
    for function in wire.given_functions:
        size += _check_definition(field, function.parameters, limits)
        if size > limits.max_tools_size:
            raise _too_much(field, f"{size} or more", limits.max_tools_size, "bytes in the schemas of all functions")


def _definition(format: ResponseFormat | None) -> Any:
    """What the client wrote of what the answer may be."""
    match format:
        case JsonObjectFormat():
            return format.schema_
        case JsonSchemaFormat():
            return format.json_schema.schema_
        case RegexFormat():
            return format.pattern
        case GrammarFormat():
            return format.grammar
    return None


def _check_definition(field: str, definition: Any, limits: Limits) -> int:
    """The definition's size: bytes of its JSON text without white space."""
    text = msgspec.json.encode(definition)
    _check_most(field, len(text), limits.max_schema, "bytes in a schema or grammar")
    if at_most(text).depth > limits.max_schema_depth:  # else what takes longer to tell need not be told
        _check_most(field, nesting(text), limits.max_schema_depth, "levels in a schema")
    return len(text)


def _check_most(field: str, number: int, most: int, what: str) -> None:
    if number > most:
        raise _too_much(field, str(number), most, what)


def _too_much(field: str, given: str, most: int, what: str) -> InvalidRequest:
    return InvalidRequest(f"{field}: Input should have at most {most} {what} (given {given}).", param=field)
