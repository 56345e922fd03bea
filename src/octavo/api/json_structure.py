"""How deep a JSON text is and how much is in it, from its bytes: without recursion, and before anything is built."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

PIECE = 2**16
"""Bytes that stay in a processor's cache while they are looked through, and take much less than a millisecond."""
_NOT_MARKS = bytes(set(range(256)) - set(b'"[]{}:'))
_STEPS = np.zeros(256, dtype=np.int8)
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1


class Structure(NamedTuple):
    """depth: levels of brackets. num_items: lists, objects and members together."""

    depth: int
    num_items: int


def at_most(text: bytes) -> Structure:
    """At least as much as either is, told soon: strings may hold any of the marks."""
    characters = np.frombuffer(text, dtype=np.uint8)
    num_lists, num_objects, num_members = (int(np.count_nonzero(characters == mark)) for mark in b"[{:")
    return Structure(num_lists + num_objects, num_lists + num_objects + num_members)


def structures(text: bytes) -> Iterator[Structure]:
    """That of the text up to the end of each of its pieces; who finds too much need not go on."""
    level = depth = num_items = 0
    for marks in _marks(text):
        steps = _STEPS[marks]
        levels = level + np.cumsum(steps, dtype=np.int32)
        depth = max(depth, int(levels.max(initial=0)))
        level = int(levels[-1]) if len(levels) else level
        num_items += int(np.count_nonzero(steps >= 0))
        yield Structure(depth, num_items)


def nesting(text: bytes) -> int:
    """Levels of brackets."""
    return max((structure.depth for structure in structures(text)), default=0)


def _marks(text: bytes) -> Iterator[NDArray[np.uint8]]:
    """Brackets and colons outside strings, piece by piece: the whole of them as numbers would be much larger than the
    text."""
    num_quotes = 0
    for piece in _pieces(text):
        marks = _without_escapes(piece).translate(None, _NOT_MARKS)
        characters = np.frombuffer(marks, dtype=np.uint8)
        is_quote = characters == ord('"')
        quotes_before = num_quotes + np.cumsum(is_quote, dtype=np.int32)
        yield characters[(quotes_before % 2 == 0) & ~is_quote]
        num_quotes += marks.count(b'"')


def _pieces(text: bytes) -> Iterator[bytes]:
    """None ends within an escape, as none begins in one."""
    start = 0
    while start < len(text):
        piece = text[start : start + PIECE]
        num_backslashes = len(piece) - len(piece.rstrip(b"\\"))
        if num_backslashes % 2:
            piece = text[start : start + PIECE + 1]
        yield piece
        start += len(piece)


def _without_escapes(text: bytes) -> bytes:
    r"""Without \\ and \" in strings; outside of them is no backslash that is JSON."""
    return text.replace(rb"\\", b"").replace(rb"\"", b"") if b"\\" in text else text
