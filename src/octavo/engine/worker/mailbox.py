"""What has come for one request and is not read yet."""

import asyncio

import msgspec

from octavo.core.output import TokenChunk
from octavo.errors import OctavoError

BLOCK = 64
"""Chunks that are kept as one, packed: a client may read nothing for half a minute, and log-probabilities as objects
take many times the memory of their numbers."""

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(TokenChunk).decode


class Mailbox:
    """A queue of chunks with one reader. What has come meanwhile is read as one chunk: a reader that is behind, with a
    slow client or on a busy machine, catches up at once."""

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._chunks: list[TokenChunk] = []  # behind the blocks
        self._error: OctavoError | None = None
        self._arrival: asyncio.Future[None] | None = None  # while the reader waits

    def put(self, chunk: TokenChunk) -> None:
        self._chunks.append(chunk)
        if len(self._chunks) == BLOCK:
            self._blocks.append(_pack(TokenChunk.joined(self._chunks)))
            self._chunks = []
        self._wake()

    def fail(self, error: OctavoError) -> None:
        """Nothing comes behind this."""
        self._error = error
        self._wake()

    @property
    def is_empty(self) -> bool:
        return not (self._chunks or self._blocks) and self._error is None

    def arrival(self) -> asyncio.Future[None]:
        """For the reader of an empty mailbox: done when something comes."""
        self._arrival = asyncio.get_running_loop().create_future()
        return self._arrival

    def take(self) -> TokenChunk:
        """All that has come since the last time, where that is something. Raises the error that came behind it."""
        chunks = [*map(_unpack, self._blocks), *self._chunks]
        if not chunks:
            assert self._error is not None
            raise self._error
        self._blocks, self._chunks = [], []
        return chunks[0] if len(chunks) == 1 else TokenChunk.joined(chunks)

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)
