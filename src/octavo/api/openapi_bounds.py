"""What this server bounds beyond what the schemas of requests say, for openapi.json."""

from collections.abc import Iterator, Mapping
from typing import Any

from octavo.core.limits import Limits

Schema = dict[str, Any]


def add_bounds(schemas: Mapping[str, Schema], limits: Limits) -> None:
    """Write the bounds that one field alone can break into the schemas of the generation endpoints."""
    for name, most in (("CompletionRequest", _completion(limits)), ("ChatCompletionRequest", _chat(limits))):
        for field, bounds in most.items():
            for part in _parts(schemas[name]["properties"][field]):
                part |= bounds.get(part.get("type", ""), {})
    prompt = schemas["CompletionRequest"]["properties"]["prompt"]
    for part in _parts(prompt):
        if part.get("items", {}).get("type") in ("string", "array"):
            part["maxItems"] = limits.max_prompts


def _both(limits: Limits) -> dict[str, Schema]:
    """By field and by the type that is bounded."""
    stop = {"maxLength": limits.max_stop_length}
    return {
        "n": {"integer": {"maximum": limits.max_n}},
        "stop": {
            "string": stop,
            "array": {"maxItems": limits.max_stop_strings, "items": {"type": "string", "minLength": 1, **stop}},
        },
        "stop_token_ids": {"array": {"maxItems": limits.max_stop_tokens}},
    }


def _completion(limits: Limits) -> dict[str, Schema]:
    return {
        **_both(limits),
        "best_of": {"integer": {"maximum": limits.max_n}},
        "logprobs": {"integer": {"maximum": limits.max_top_logprobs}},
    }


def _chat(limits: Limits) -> dict[str, Schema]:
    return {
        **_both(limits),
        "top_logprobs": {"integer": {"maximum": limits.max_top_logprobs}},
        "messages": {"array": {"maxItems": limits.max_messages}},
        "tools": {"array": {"maxItems": limits.max_tools}},
        "functions": {"array": {"maxItems": limits.max_tools}},
    }


def _parts(schema: Schema) -> Iterator[Schema]:
    yield from schema.get("anyOf", (schema,))
