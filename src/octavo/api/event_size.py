"""How much of an answer an event is."""

from collections.abc import Sequence

import msgspec

from octavo.core.output import Alternative, LogprobEntry, TextEvent

_ITEM = 90
_BYTE = 6
"""Of a token in `logprobs`, about: its numbers with their names, and each byte of its text in two notations."""

_encode = msgspec.json.Encoder().encode


def event_size(event: TextEvent) -> int:
    """Bytes: of texts exactly, of `logprobs` about, as encoding them would take long."""
    size = _text_size(event.text) + 2 * _text_size(event.reasoning)
    size += sum(_text_size(delta.name) + _text_size(delta.arguments) for delta in event.tool_calls)
    return size + sum(_size((entry,)) + _size(entry.top) for entry in event.entries)


def _text_size(text: str) -> int:
    return len(_encode(text)) - 2 if text else 0


def _size(tokens: Sequence[LogprobEntry | Alternative]) -> int:
    return sum(_ITEM + _BYTE * len(token.token) for token in tokens)
