"""Rows of the prompt log as JSON."""

import msgspec

from octavo.api.schemas.common import WireData
from octavo.core.log_entry import LogEntry


def log_row(entry: LogEntry) -> WireData:
    """A row for `msgspec.json.encode`, on one line. Request and answer are what they were: objects."""
    return {
        "object": "log_entry",
        "id": entry.id,
        "request_id": entry.request_id,
        "created": entry.created,
        "key_id": entry.key_id,
        "user": entry.user,
        "endpoint": entry.endpoint,
        "model": entry.model,
        "status": entry.status,
        "request": _raw(entry.request),
        "prompts": entry.prompts,
        "answer": _raw(entry.answer),
        "finish_reasons": entry.finish_reasons,
        "usage": {
            "prompt_tokens": entry.prompt_tokens,
            "completion_tokens": entry.completion_tokens,
            "total_tokens": entry.prompt_tokens + entry.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": entry.cached_tokens},
        },
        "seconds": entry.seconds,
        "seconds_to_first_token": entry.seconds_to_first_token,
    }


def _raw(text: str) -> msgspec.Raw:
    """JSON without the white space that a client may have sent."""
    return msgspec.Raw(msgspec.json.format(text.encode(), indent=-1))
