"""How rows lie in a segment of the spool: marker, length, CRC-32 of length and row, the row itself.

A record that was not written to its end is at the end of its segment, and nobody was told that it is there. One that
was damaged later may be anywhere; the next is found by its marker, which has bytes that no text has.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct

MARKER = b"\xff\xfeOCTROW\xfe\xff"
_LENGTH = Struct("<Q")
_NUMBERS = Struct("<QI")
HEADER_SIZE = len(MARKER) + _NUMBERS.size


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are no record. is_torn: they are the beginning of one that was not written to its end."""

    content: bytes
    is_torn: bool


def to_record(row: bytes) -> bytes:
    return b"".join((MARKER, _NUMBERS.pack(len(row), _checksum(row)), row))


def read_records(content: bytes) -> Iterator[bytes | Damage]:
    """The rows of a segment in order, and what is damaged between them."""
    position = 0
    while position < len(content):
        row = _row_at(content, position)
        if row is not None:
            yield row
            position += HEADER_SIZE + len(row)
        else:
            end = _next_record(content, position + 1)
            yield Damage(content[position:end], is_torn=end == len(content) and _is_torn(content[position:]))
            position = end


def _row_at(content: bytes, position: int) -> bytes | None:
    """None where no whole record begins."""
    start = position + HEADER_SIZE
    if not content.startswith(MARKER, position) or start > len(content):
        return None
    length, checksum = _NUMBERS.unpack_from(content, position + len(MARKER))
    row = content[start : start + length]
    return row if len(row) == length and _checksum(row) == checksum else None


def _next_record(content: bytes, position: int) -> int:
    """Where the next whole record begins, or the end."""
    while (position := content.find(MARKER, position)) >= 0:
        if _row_at(content, position) is not None:
            return position
        position += 1
    return len(content)


def _is_torn(rest: bytes) -> bool:
    if len(rest) < HEADER_SIZE:
        return MARKER.startswith(rest[: len(MARKER)])
    length, _ = _NUMBERS.unpack_from(rest, len(MARKER))
    return rest.startswith(MARKER) and len(rest) < HEADER_SIZE + int(length)


def _checksum(row: bytes) -> int:
    """Of its length as well."""
    return zlib.crc32(row, zlib.crc32(_LENGTH.pack(len(row))))
