"""Where the body of a request ends, and what of the bytes in between is the body. RFC 9112, section 6.

Whoever reads it otherwise than the proxy in front of it takes a part of one request for another one. So a message that
says its length twice, or in a way that is not one of two, is refused.
"""

import re
from collections.abc import Sequence
from typing import Protocol

from octavo.api.errors import HeadersTooLarge, MalformedMessage
from octavo.server.request_head import has_half_line_end

MAX_CHUNK_LINE = 256
"""Bytes of a chunk's size with its extensions, which mean nothing here."""
MAX_CHUNKS = 100
"""Taken in a turn, which is less than half a millisecond: others have theirs."""
MAX_TRAILERS = 8 * 2**10
"""Bytes of the headers after a chunked body, which are thrown away: they have passed no check."""

_LENGTH = re.compile(rb"[0-9]{1,18}")
_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:;[^\r\n\0]*)?\r\n")
_LINE_END = b"\r\n"

Headers = Sequence[tuple[bytes, bytes]]


class Body(Protocol):
    """What is left of a request after its head."""

    @property
    def is_complete(self) -> bool: ...

    @property
    def has_more(self) -> bool:
        """Whether `take` has left some of what has come, to be taken in the next turn."""
        ...

    def take(self, buffer: bytearray) -> bytes:
        """What the beginning of the buffer has of the body, whose bytes are removed from it. Raises MalformedMessage
        and HeadersTooLarge."""
        ...


def body_of(headers: Headers, http_version: str) -> Body:
    """The body that the headers, with names in lower case, announce. Raises MalformedMessage."""
    lengths = [value for name, value in headers if name == b"content-length"]
    encodings = [value.lower() for name, value in headers if name == b"transfer-encoding"]
    if encodings:
        if lengths or encodings != [b"chunked"] or http_version == "1.0":
            raise MalformedMessage("The transfer-encoding must be chunked, once, in HTTP/1.1, without content-length.")
        return ChunkedBody()
    if not lengths:
        return SizedBody(0)
    if len(lengths) > 1 or _LENGTH.fullmatch(lengths[0]) is None:
        raise MalformedMessage("The content-length header must be one whole number of bytes, at least 0.")
    return SizedBody(int(lengths[0]))


class SizedBody:
    """So many bytes."""

    has_more = False

    def __init__(self, size: int) -> None:
        self._num_missing = size

    @property
    def is_complete(self) -> bool:
        return self._num_missing == 0

    def take(self, buffer: bytearray) -> bytes:
        piece = bytes(buffer[: self._num_missing])
        del buffer[: len(piece)]
        self._num_missing -= len(piece)
        return piece


class ChunkedBody:
    """Chunks, each with its size, to the empty one (section 7.1). A million chunks of a byte are as one piece."""

    def __init__(self) -> None:
        self.is_complete = False
        self.has_more = False
        self._num_missing = 0
        """Of the present chunk, with the line end behind it."""
        self._is_in_trailers = False

    def take(self, buffer: bytearray) -> bytes:
        body = bytearray()
        place = self._take_data(buffer, 0, body)
        for _ in range(MAX_CHUNKS):
            if self._num_missing or (line := self._size_line(buffer, place)) is None:
                self.has_more = False
                break
            place = self._take_data(buffer, line.end(), body)
        else:
            self.has_more = True
        if self._is_in_trailers:
            place = self._skip_trailers(buffer, place)
        del buffer[:place]
        return bytes(body)

    def _size_line(self, buffer: bytearray, place: int) -> re.Match[bytes] | None:
        """The line with the size of the next chunk; None where it has not come, or no chunk follows."""
        if self._is_in_trailers:
            return None
        line = _SIZE_LINE.match(buffer, place, place + MAX_CHUNK_LINE)
        if line is not None:
            size = int(line[1], 16)
            self._is_in_trailers = size == 0
            self._num_missing = size + len(_LINE_END) if size else 0
        elif len(buffer) - place >= MAX_CHUNK_LINE or buffer.find(b"\n", place) >= 0:
            raise MalformedMessage("A chunk must begin with its size in hexadecimal digits and CR LF.")
        return line

    def _take_data(self, buffer: bytearray, place: int, body: bytearray) -> int:
        """Take what there is of the present chunk from `place` on; returns where that ends."""
        end_of_data = place + self._num_missing - len(_LINE_END)
        end = min(place + self._num_missing, len(buffer))
        tail = max(place, end_of_data)
        body += buffer[place : min(end, tail)]
        if not _LINE_END[tail - end_of_data :].startswith(buffer[tail:end]):
            raise MalformedMessage("A chunk must end with CR LF.")
        self._num_missing -= end - place
        return end

    def _skip_trailers(self, buffer: bytearray, place: int) -> int:
        """Returns where the body ends, or `place` while the trailers are not whole."""
        if buffer.startswith(_LINE_END, place):
            self.is_complete = True
            return place + len(_LINE_END)
        found = buffer.find(_LINE_END + _LINE_END, place)
        end = len(buffer) if found < 0 else found
        if end - place > MAX_TRAILERS:
            raise HeadersTooLarge(f"The trailers are too large; at most {MAX_TRAILERS} bytes are read.")
        if has_half_line_end(buffer, place, end):
            raise MalformedMessage("Lines of a request end with CR LF, and have neither elsewhere.")
        self.is_complete = found >= 0
        return end + 2 * len(_LINE_END) if self.is_complete else place
