"""What the schemas of requests allow and this server does not."""

import json
from collections.abc import Iterator
from typing import Any

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
    field = wire.functions_field
    _check_most(field, len(wire.given_functions), limits.max_tools, "functions")
    for function in wire.given_functions:
        _check_definition(field, function.parameters, limits)


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


def _check_definition(field: str, definition: Any, limits: Limits) -> None:
    size = len(json.dumps(definition, ensure_ascii=False, separators=(",", ":")).encode())
    _check_most(field, size, limits.max_schema, "bytes in a schema or grammar")
    _check_most(field, _depth(definition), limits.max_schema_depth, "levels in a schema")


def _depth(value: Any) -> int:
    return 1 + max(map(_depth, _parts(value)), default=0) if isinstance(value, dict | list) else 0


def _parts(value: dict[str, Any] | list[Any]) -> Iterator[Any]:
    yield from value.values() if isinstance(value, dict) else value


def _check_most(field: str, number: int, most: int, what: str) -> None:
    if number > most:
        raise InvalidRequest(f"{field}: Input should have at most {most} {what} (given {number}).", param=field)
