"""Moves rows from the spool to the database."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from math import inf
from time import monotonic
from typing import TypeVar

from octavo.store.late_database import LateDatabase
from octavo.store.log_row import Batch, LogRow, RowsRefused, read_batches, size_of
from octavo.store.outage import Outage
from octavo.store.segment import Segment
from octavo.store.spool import Spool

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
SLOW_TIME = 5.0
"""Seconds after which an attempt that has not ended counts as one that fails."""
ADOPT_INTERVAL = 60.0
MAX_READS = 5
"""After so many that failed a segment is set aside, as those that came after it wait for it."""
_SLOW = f"no answer for {SLOW_TIME:g} s"

T = TypeVar("T")


class LogMover:
    """In order, each row once. What fails is tried again, with growing pauses, until it works."""

    def __init__(self, spool: Spool, database: LateDatabase, on_stored: Callable[[int], None]) -> None:
        """on_stored: is told how many bytes went into the database."""
        self._spool = spool
        self._database = database
        self._on_stored = on_stored
        self._num_gone = 0  # of rows that are out of the spool
        self._next_adoption = -inf
        self._is_idle = True
        self._progress = asyncio.Condition()
        self.outage = Outage("rows of the prompt log cannot be moved to its database, and wait in its spool")
        # Until the next start: somebody has to look at those files.
        self.losses = Outage("rows of the prompt log cannot be stored, and are in the .bad files of its spool")
        self.num_stored = 0
        self.num_set_aside = 0

    async def run(self) -> None:
        """Without end."""
        while True:
            if monotonic() >= self._next_adoption:
                await self._until_it_works(self._spool.adopt)
                self._next_adoption = monotonic() + ADOPT_INTERVAL
                await self._tell()
            with suppress(TimeoutError):
                async with asyncio.timeout(ADOPT_INTERVAL):
                    await self._spool.wait_for_rows()
            await self._move_all()

    async def catch_up(self) -> None:
        """Wait until all rows that are in the spool now are out of it."""
        await self._wait(lambda: self._has_adopted)
        target = self._num_gone + self._spool.num_waiting
        await self._wait(lambda: self._num_gone >= target)

    async def drain(self) -> None:
        """Wait until nothing is left in the spool."""
        await self._wait(lambda: self._has_adopted and self._is_idle and not self._spool.num_waiting)

    @property
    def _has_adopted(self) -> bool:
        return self._next_adoption > -inf

    async def _wait(self, holds: Callable[[], bool]) -> None:
        async with self._progress:
            await self._progress.wait_for(holds)

    async def _move_all(self) -> None:
        self._is_idle = False
        while (segment := await self._spool.oldest()) is not None:
            await self._move(segment)
        self._is_idle = True
        await self._tell()

    async def _move(self, segment: Segment) -> None:
        content = await self._read(segment)
        if content is None:
            await self._until_it_works(lambda: self._spool.set_aside_whole(segment))
            num_rows, num_bytes, num_damages = segment.num_rows, segment.size, 0
        else:
            num_rows, num_bytes, num_damages = await self._move_batches(segment, read_batches(content))
        await self._until_it_works(lambda: self._spool.finish(segment))
        if num_rows > num_damages:
            self._count_lost(num_rows - num_damages, "a segment could not be read, or somebody took it away")
        await self._count_gone(num_rows, num_bytes)

    async def _read(self, segment: Segment) -> bytes | None:
        """None where that fails again and again."""
        for number in range(MAX_READS):
            await asyncio.sleep(number * FIRST_PAUSE)
            try:
                return await asyncio.to_thread(segment.read)
            except OSError as error:
                self.outage.note(error)
        return None

    async def _move_batches(self, segment: Segment, batches: Iterator[Batch]) -> tuple[int, int, int]:
        """How many rows of the segment, and bytes, were not in them; and how many damages were."""
        num_rows, num_bytes, num_damages = segment.num_rows, segment.size, 0
        while (batch := await asyncio.to_thread(next, batches, None)) is not None:
            if batch.rows:
                await self._store(segment, batch.rows)
            for damage in batch.damages:
                await self._set_aside(segment, damage, "it is damaged, or of another version")
            num_rows -= len(batch.rows)
            num_bytes -= batch.num_bytes
            num_damages += len(batch.damages)
        return num_rows, num_bytes, num_damages

    async def _store(self, segment: Segment, rows: Sequence[LogRow]) -> None:
        """What is refused is halved, until it is a single row."""
        try:
            await self._until_it_works(lambda: self._insert(rows))
        except RowsRefused as refused:
            if len(rows) > 1:
                for half in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
                    await self._store(segment, half)
                return
            await self._set_aside(segment, rows[0].record, str(refused))
        else:
            self.num_stored += len(rows)
            self._on_stored(size_of(rows))
        await self._count_gone(len(rows), size_of(rows))

    async def _insert(self, rows: Sequence[LogRow]) -> None:
        database = await self._database.opened()
        await database.insert(rows)

    async def _set_aside(self, segment: Segment, content: bytes, why: str) -> None:
        await self._until_it_works(lambda: self._spool.set_aside(segment, content))
        self._count_lost(1, why)

    def _count_lost(self, num_rows: int, why: str) -> None:
        self.num_set_aside += num_rows
        self.losses.note(ValueError(why))

    async def _count_gone(self, num_rows: int, num_bytes: int) -> None:
        """So many are out of the spool."""
        self._spool.release(num_rows, num_bytes)
        self._num_gone += num_rows
        await self._tell()

    async def _tell(self) -> None:
        """Those who wait."""
        async with self._progress:
            self._progress.notify_all()

    async def _until_it_works(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Raises RowsRefused, which is an answer."""
        pause = FIRST_PAUSE
        while True:
            slow = asyncio.get_running_loop().call_later(SLOW_TIME, self.outage.note, TimeoutError(_SLOW))
            try:
                result = await attempt()
            except RowsRefused:
                self.outage.end()
                raise
            except Exception as error:
                self.outage.note(error)
            else:
                self.outage.end()
                return result
            finally:
                slow.cancel()
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
