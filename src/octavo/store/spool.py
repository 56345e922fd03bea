"""Where rows are durable until the database has them."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TypeVar

from octavo.errors import PromptLogUnavailable
from octavo.store.outage import Outage
from octavo.store.record import HEADER_SIZE, to_record
from octavo.store.segment import Segment
from octavo.store.spool_files import SpoolFiles

RETRY_AFTER = 5.0
"""Seconds in which a spool that could not be written is not tried again."""

T = TypeVar("T")


class Spool:
    """Takes rows, and gives them to the one who moves them to the database. For one event loop.

    Rows that come while others are written are written together after them, so that many share one fsync.
    """

    def __init__(self, root: Path, digest: str, max_bytes: int) -> None:
        """digest: of the database. max_bytes: that may wait. Makes no folder."""
        self._files = SpoolFiles(root, digest)
        self._max_bytes = max_bytes
        self._thread = ThreadPoolExecutor(1, "prompt-log")
        self._pending: list[tuple[bytes, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None
        self._has_rows = asyncio.Event()
        self._retry_at = 0.0
        self._is_closed = False
        self.outage = Outage("the prompt log's spool cannot be written")
        self.num_waiting = 0
        self.waiting_bytes = 0

    def check(self) -> None:
        """Raise PromptLogUnavailable where it is full, or could just not be written."""
        self._check_room(0)
        if self.outage.is_on and monotonic() < self._retry_at:
            raise PromptLogUnavailable("The prompt log cannot be written now.", retry_after=RETRY_AFTER)

    async def append(self, row: bytes) -> None:
        """Return when it is durable. Raises PromptLogUnavailable."""
        size = HEADER_SIZE + len(row)
        self._check_room(size)
        written = asyncio.get_running_loop().create_future()
        self._pending.append((row, written))
        self._count(1, size)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_pending())
        await written

    async def wait_for_rows(self) -> None:
        """Return when there may be something to be moved."""
        await self._has_rows.wait()

    async def oldest(self) -> Segment | None:
        """What is to be moved next, the same until `finish`; None where there is nothing."""
        self._has_rows.clear()
        segment = await self._in_thread(self._files.oldest)
        if segment is not None:
            self._has_rows.set()
        return segment

    async def finish(self, segment: Segment) -> None:
        """Remove the oldest one; its rows are counted by `release`. Raises OSError."""
        await self._in_thread(lambda: self._files.finish(segment))

    async def set_aside(self, segment: Segment, content: bytes) -> None:
        """Keep what cannot be moved, in a file of its own. Raises OSError."""
        await self._in_thread(lambda: self._files.set_aside(segment, content))

    async def adopt(self) -> None:
        """Take over what processes left that have ended. Raises OSError."""
        for segment in await self._in_thread(self._files.adopt):
            self._count(segment.num_rows, segment.size)
            self._has_rows.set()

    async def has_rows_for_others(self) -> bool:
        """Whether a process left rows for another database. Raises OSError."""
        return await self._in_thread(self._files.has_rows_for_others)

    def release(self, num_rows: int, num_bytes: int) -> None:
        """So much waits no more."""
        self._count(-num_rows, -num_bytes)

    async def stop(self) -> None:
        """Take no more rows. Those that came are durable when it returns, or their `append` has failed."""
        self._is_closed = True
        while self._writing is not None:
            await asyncio.wait({self._writing})

    async def close(self) -> None:
        """Leave what there is to whoever comes next."""
        self._is_closed = True
        await self._in_thread(self._files.close)
        self._thread.shutdown(wait=False)

    async def _write_pending(self) -> None:
        while self._pending:
            batch, self._pending = self._pending, []
            try:
                await self._in_thread(partial(self._write, [row for row, _ in batch]))
            except Exception as error:
                self._fail(batch, error)
            else:
                self.outage.end()
                self._has_rows.set()
                _settle(batch)
        self._writing = None

    def _write(self, rows: Sequence[bytes]) -> None:
        self._files.append([to_record(row) for row in rows])

    def _fail(self, batch: Sequence[tuple[bytes, asyncio.Future[None]]], error: Exception) -> None:
        self.outage.note(error)
        self._retry_at = monotonic() + RETRY_AFTER
        for row, written in batch:
            self._count(-1, -HEADER_SIZE - len(row))
            if not written.done():
                said = PromptLogUnavailable("The prompt log could not be written.", retry_after=RETRY_AFTER)
                said.__cause__ = error
                written.set_exception(said)

    def _check_room(self, size: int) -> None:
        if self._is_closed:
            raise PromptLogUnavailable("The server is shutting down.", retry_after=RETRY_AFTER)
        if self.waiting_bytes + max(size, 1) > self._max_bytes:
            raise PromptLogUnavailable(
                "The prompt log has no room: too much waits for its database.", retry_after=RETRY_AFTER
            )

    def _count(self, num_rows: int, num_bytes: int) -> None:
        self.num_waiting += num_rows
        self.waiting_bytes += num_bytes

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _settle(batch: Sequence[tuple[bytes, asyncio.Future[None]]]) -> None:
    for _, written in batch:
        if not written.done():  # its request was cancelled meanwhile
            written.set_result(None)
