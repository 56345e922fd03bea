"""Where rows are durable until the database has them."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from octavo.core.log_entry import LogEntry
from octavo.errors import LogEntryTooLarge, PromptLogUnavailable
from octavo.store.log_row import encode_row
from octavo.store.outage import Outage
from octavo.store.record import to_record
from octavo.store.reservation import Reservation
from octavo.store.segment import Segment
from octavo.store.set_aside import SetAside
from octavo.store.spool_files import SEGMENT_SIZE, SpoolFiles

RETRY_AFTER = 5.0
"""Seconds in which a spool that could not be written is not tried again."""
MAX_ROW = 32 * 2**20
MAX_SHARE = 1 / 4
"""Of the spool, for one row."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PendingRecord:
    """written: cancelled where nobody waits for it any more."""

    content: bytes
    written: "asyncio.Future[None]"


class Spool:
    """Takes rows, and gives them to the one who moves them to the database. For one event loop.

    Rows that come while others are written are written together after them, so that many share one fsync.
    """

    def __init__(self, root: Path, digest: str, max_bytes: int) -> None:
        """digest: of the database. max_bytes: that may wait. Makes no folder."""
        self._files = SpoolFiles(root, digest)
        self._max_bytes = max_bytes
        self._thread = ThreadPoolExecutor(1, "prompt-log")
        self._pending: deque[PendingRecord] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._has_rows = asyncio.Event()
        self._num_reserved = 0
        self._is_closed = False
        self._unwritable = Outage("the prompt log's spool cannot be written", lasts=RETRY_AFTER)
        self._full = Outage("the prompt log's spool is full: more comes than its database takes")
        self.num_waiting = 0
        self.waiting_bytes = 0

    @property
    def outages(self) -> Sequence[Outage]:
        return self._unwritable, self._full, self._files.leftovers, self._files.foreign

    @property
    def aside(self) -> SetAside:
        """As of the last look: when something was set aside, or when leftovers were looked for."""
        return self._files.aside

    @property
    def max_row(self) -> int:
        return min(MAX_ROW, int(self._max_bytes * MAX_SHARE))

    def reserve(self, num_bytes: int) -> Reservation:
        """Raises LogEntryTooLarge, and PromptLogUnavailable where it is full, or could just not be written."""
        if self._unwritable.is_on:
            raise PromptLogUnavailable("The prompt log cannot be written now.", retry_after=RETRY_AFTER)
        self._check_room(num_bytes)
        self._num_reserved += num_bytes
        return Reservation(num_bytes, self._give_back)

    async def append(self, entry: LogEntry, reservation: Reservation | None) -> None:
        """Return when it is durable. It is not written where nobody waits for it any more when its turn comes.

        Raises LogEntryTooLarge and PromptLogUnavailable.
        """
        self._check_open()
        with reservation or nullcontext():
            record = await self._in_thread(lambda: to_record(encode_row(entry)))
        self._check_room(len(record))
        written = asyncio.get_running_loop().create_future()
        self._pending.append(PendingRecord(record, written))
        self._count(1, len(record))
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

    async def set_aside_whole(self, segment: Segment) -> None:
        """Keep a segment that cannot be read, as a file of its own. Raises OSError."""
        await self._in_thread(lambda: self._files.set_aside_whole(segment))

    async def adopt(self) -> None:
        """Take over what processes left that have ended. Raises OSError."""
        for segment in await self._in_thread(self._files.adopt):
            self._count(segment.num_rows, segment.size)
            self._has_rows.set()

    async def has_rows(self) -> bool:
        """Whether rows for the database are on the disk, of whatever process. Raises OSError."""
        return await self._in_thread(self._files.has_rows)

    def release(self, num_rows: int, num_bytes: int) -> None:
        """So much waits no more."""
        self._count(-num_rows, -num_bytes)
        self._end_fullness()

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
        while batch := self._next_batch():
            try:
                await self._write(batch)
            except Exception as error:
                self._fail(batch, error)
            else:
                self._unwritable.end()
                self._has_rows.set()
                for record in batch:
                    if not record.written.done():  # nobody waits for it any more
                        record.written.set_result(None)
        self._writing = None

    async def _write(self, batch: Sequence[PendingRecord]) -> None:
        await self._in_thread(lambda: self._files.append([record.content for record in batch]))

    def _next_batch(self) -> Sequence[PendingRecord]:
        """As much as a segment has, without what nobody waits for any more; nothing where nothing is left."""
        batch: list[PendingRecord] = []
        size = 0
        while self._pending and size < SEGMENT_SIZE:
            record = self._pending.popleft()
            if record.written.cancelled():
                self.release(1, len(record.content))
            else:
                batch.append(record)
                size += len(record.content)
        return batch

    def _fail(self, batch: Sequence[PendingRecord], error: Exception) -> None:
        self._unwritable.note(error)
        for record in batch:
            self.release(1, len(record.content))
            if not record.written.done():
                said = PromptLogUnavailable("The prompt log could not be written.", retry_after=RETRY_AFTER)
                said.__cause__ = error
                record.written.set_exception(said)

    def _check_open(self) -> None:
        if self._is_closed:
            raise PromptLogUnavailable("The server is shutting down.", retry_after=RETRY_AFTER)

    def _check_room(self, num_bytes: int) -> None:
        self._check_open()
        if num_bytes > self._max_bytes:
            raise LogEntryTooLarge("The request and its answer are too large for the prompt log.", param="log_prompt")
        if max(num_bytes, 1) > self._num_free:
            said = PromptLogUnavailable(
                "The prompt log has no room: too much waits for its database.", retry_after=RETRY_AFTER
            )
            self._full.note(said)
            raise said

    @property
    def _num_free(self) -> int:
        return self._max_bytes - self.waiting_bytes - self._num_reserved

    def _give_back(self, num_bytes: int) -> None:
        self._num_reserved -= num_bytes
        self._end_fullness()

    def _end_fullness(self) -> None:
        """Not before half of it is free: it would come and go with each row."""
        if self._full.is_on and self._num_free >= self._max_bytes // 2:
            self._full.end()

    def _count(self, num_rows: int, num_bytes: int) -> None:
        self.num_waiting += num_rows
        self.waiting_bytes += num_bytes

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
