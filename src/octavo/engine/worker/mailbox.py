"""What has come for one request and is not read yet."""

import asyncio
from collections import deque

import msgspec

from octavo.core.output import TokenChunk
from octavo.errors import OctavoError

MAX_AT_ONCE = 2 * 2**10
"""Packed bytes that a reader who is behind gets in a turn, or one chunk: some 150 tokens, or six with 20
log-probabilities each, whose events take about half a millisecond to make, in which nobody else is served."""

_unpack = msgspec.msgpack.Decoder(TokenChunk).decode


class Mailbox:
    """A queue of chunks with one reader.

    What is not read stays packed: a client may read nothing for half a minute, and log-probabilities as objects take
    many times the memory of their numbers. What has come meanwhile is read as one chunk, up to a size: a reader that is
    behind, with a slow client or on a busy machine, catches up, and yet does not keep the others waiting.
    """

    def __init__(self) -> None:
        self._chunks: deque[bytes] = deque()
        self._error: OctavoError | None = None
        self._arrival: asyncio.Future[None] | None = None  # while the reader waits

    def put(self, chunk: bytes) -> None:
        """chunk: a TokenChunk, packed."""
        self._chunks.append(chunk)
        self._wake()

    def fail(self, error: OctavoError) -> None:
        """Nothing comes behind this."""
        self._error = error
        self._wake()

    @property
    def is_empty(self) -> bool:
        return not self._chunks and self._error is None

    def arrival(self) -> asyncio.Future[None]:
        """For the reader of an empty mailbox: done when something comes."""
        self._arrival = asyncio.get_running_loop().create_future()
        return self._arrival

    def take(self) -> TokenChunk:
        """What has come first, where something has. Raises the error that came behind all chunks."""
        if not self._chunks:
            assert self._error is not None
            raise self._error
        first = self._chunks.popleft()
        more = self._more(MAX_AT_ONCE - len(first))
        return TokenChunk.joined([_unpack(chunk) for chunk in (first, *more)]) if more else _unpack(first)

    def _more(self, size: int) -> list[bytes]:
        """The next chunks, of no more than so many bytes together."""
        chunks = []
        while self._chunks and (size := size - len(self._chunks[0])) >= 0:
            chunks.append(self._chunks.popleft())
        return chunks

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)
