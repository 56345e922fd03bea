"""Server-sent events as bytes."""

from collections.abc import Callable
from typing import Any

import msgspec

from octavo.api.schemas.common import WireData

LINE_ENDS = {"\u0085": b"\\u0085", "\u2028": b"\\u2028", "\u2029": b"\\u2029"}
"""Clients that split lines as Python does split them at these characters too. In JSON they can only be in strings."""

_encode = msgspec.json.Encoder().encode


def sse_event(data: Any) -> bytes:
    """An event of any data."""
    return b"data: %b\n\n" % _on_one_line(_encode(data))


class ChunkEvents:
    """Events of chunks that share all but their choice. head: what they share; it is encoded only once."""

    def __init__(self, head: WireData) -> None:
        self._head = _on_one_line(_encode(head).removesuffix(b"}"))

    def event(self, choice: WireData) -> bytes:
        return b'data: %b,"choices":[%b]}\n\n' % (self._head, _on_one_line(_encode(choice)))

    def text_events(self, choice: WireData) -> Callable[[str], bytes]:
        """What makes the events that are `choice`'s but for the text, which is the last empty string in it."""
        before, _, after = self.event(choice).rpartition(b'""')
        return lambda text: b"".join((before, _on_one_line(_encode(text)), after))


def _on_one_line(json: bytes) -> bytes:
    if json.isascii():
        return json
    for character, escaped in LINE_ENDS.items():
        json = json.replace(character.encode(), escaped)
    return json
