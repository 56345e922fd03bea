"""The beginning of a request: its line and its headers, up to the empty line."""

import re

from octavo.api.errors import HeadersTooLarge, MalformedMessage, TargetTooLong

MAX_LINE = 8 * 2**10
"""Bytes of the request line. No path of ours has a tenth of it."""
MAX_FIELDS = 1000
"""Headers. Each costs more memory than its bytes."""

_END = b"\r\n\r\n"
_METHOD = re.compile(rb"[A-Za-z]")
_EMPTY_LINES = re.compile(rb"(?:\r\n)+")
_HALF_LINE_END = re.compile(rb"(?<!\r)\n|\r(?!\n|\Z)")


class HeadReader:
    """Takes heads from the beginning of a buffer, and looks at each byte once, however slowly they come."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._num_seen = 0
        self._num_lines = 0

    def take(self, buffer: bytearray) -> bytes | None:
        """The head, removed from the buffer, or None while it is not whole.

        A line that ends otherwise than all parsers agree on is refused, as is what is no request from its first byte
        on. Raises HeadersTooLarge, TargetTooLong and MalformedMessage.
        """
        if self._num_seen == 0:
            _drop_empty_lines(buffer)
            if buffer == b"\r":
                return None  # perhaps one more
        end = buffer.find(_END, max(0, self._num_seen - len(_END) + 1))
        size = len(buffer) if end < 0 else end + len(_END)
        self._num_lines += buffer.count(b"\n", self._num_seen, size)
        self._check(buffer, size)
        if end < 0:
            self._num_seen = size
            return None
        self._num_seen = self._num_lines = 0
        return _taken(buffer, size)

    def _check(self, buffer: bytearray, size: int) -> None:
        if size and _METHOD.match(buffer) is None:
            raise MalformedMessage("This is no HTTP request: it does not begin with a method.")
        if has_half_line_end(buffer, max(0, self._num_seen - 1), size):
            raise MalformedMessage("Lines of a request end with CR LF, and have neither elsewhere.")
        if size > MAX_LINE and buffer.find(b"\r\n", 0, MAX_LINE + 2) < 0:
            raise TargetTooLong(f"The request line is too long; at most {MAX_LINE} bytes are read.")
        if size > self._max_bytes:
            raise HeadersTooLarge(f"The headers are too large; at most {self._max_bytes} bytes are read.")
        if self._num_lines > MAX_FIELDS + 2:  # the request line and the empty one
            raise HeadersTooLarge(f"There are too many headers; at most {MAX_FIELDS} are read.")


def has_half_line_end(buffer: bytearray, start: int, end: int) -> bool:
    """Whether there is a CR without an LF, but for one at the very end, or an LF without a CR."""
    return _HALF_LINE_END.search(buffer, start, end) is not None


def _drop_empty_lines(buffer: bytearray) -> None:
    """Old clients send one after a body; it means nothing."""
    if (lines := _EMPTY_LINES.match(buffer)) is not None:
        end = lines.end()
        del lines  # it holds the buffer
        del buffer[:end]


def _taken(buffer: bytearray, size: int) -> bytes:
    head = bytes(buffer[:size])
    del buffer[:size]
    return head
