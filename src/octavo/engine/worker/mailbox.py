"""What has come for one request and is not read yet."""

import asyncio

from octavo.core.output import TokenChunk
from octavo.errors import OctavoError


class Mailbox:
    """A queue of chunks with one reader. What has come meanwhile is read as one chunk: a reader that is behind, with a
    slow client or on a busy machine, catches up at once."""

    def __init__(self) -> None:
        self._chunks: list[TokenChunk] = []
        self._error: OctavoError | None = None
        self._arrival: asyncio.Future[None] | None = None  # while the reader waits

    def put(self, chunk: TokenChunk) -> None:
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
        """All that has come since the last time, where that is something. Raises the error that came behind it."""
        if not self._chunks:
            assert self._error is not None
            raise self._error
        chunks, self._chunks = self._chunks, []
        return chunks[0] if len(chunks) == 1 else TokenChunk.joined(chunks)

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)
