"""Moves rows from the spool to the database."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from octavo.store.log_database import LogDatabase, RowsRefused
from octavo.store.log_row import LogRow, read_batches, size_of
from octavo.store.outage import Outage
from octavo.store.segment import Segment
from octavo.store.spool import Spool

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
SLOW_TIME = 5.0
"""Seconds after which an attempt that has not ended counts as one that fails."""
ADOPT_INTERVAL = 60.0
_SLOW = f"no answer for {SLOW_TIME:g} s"

T = TypeVar("T")

_log = logging.getLogger(__name__)


class LogMover:
    """In order, each row once. What fails is tried again, with growing pauses, until it works."""

    def __init__(self, spool: Spool, database: LogDatabase, on_stored: Callable[[int], None]) -> None:
        """on_stored: is told how many bytes went into the database."""
        self._spool = spool
        self._database = database
        self._on_stored = on_stored
        self._num_gone = 0  # of rows that are out of the spool
        self._has_adopted = False
        self._is_idle = True
        self._progress = asyncio.Condition()
        self.outage = Outage("rows of the prompt log cannot be moved to its database, and wait in its spool")
        self._refusals = Outage("the database refuses a row of the prompt log by itself")
        self.num_stored = 0
        self.num_set_aside = 0

    async def run(self) -> None:
        """Without end."""
        if await self._until_it_works(self._spool.has_rows_for_others):
            _log.warning("rows in the prompt log's spool are for another database, and wait for a start with it")
        while True:
            await self._until_it_works(self._spool.adopt)
            self._has_adopted = True
            await self._tell()
            with suppress(TimeoutError):
                async with asyncio.timeout(ADOPT_INTERVAL):
                    await self._spool.wait_for_rows()
            await self._move_all()

    async def catch_up(self, seconds: float) -> None:
        """Wait until all rows that are in the spool now are out of it; not longer."""
        await self._wait(seconds, lambda: self._has_adopted)
        target = self._num_gone + self._spool.num_waiting
        await self._wait(seconds, lambda: self._num_gone >= target)

    async def drain(self, seconds: float) -> None:
        """Wait until nothing is left in the spool; not longer."""
        await self._wait(seconds, lambda: self._has_adopted and self._is_idle and not self._spool.num_waiting)

    async def _wait(self, seconds: float, holds: Callable[[], bool]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._progress:
                await self._progress.wait_for(holds)

    async def _move_all(self) -> None:
        self._is_idle = False
        while (segment := await self._spool.oldest()) is not None:
            await self._move(segment)
        self._is_idle = True
        await self._tell()

    async def _move(self, segment: Segment) -> None:
        num_before, num_damages = self.num_set_aside, 0
        num_rows, num_bytes = segment.num_rows, segment.size
        for batch in await self._until_it_works(lambda: asyncio.to_thread(lambda: read_batches(segment.read()))):
            if batch.rows:
                await self._store(segment, batch.rows)
            num_rows -= len(batch.rows)
            num_bytes -= batch.num_bytes
            for damage in batch.damages:
                await self._set_aside(segment, damage)
            num_damages += len(batch.damages)
        await self._until_it_works(lambda: self._spool.finish(segment))
        self.num_set_aside += max(0, num_rows - num_damages)  # somebody took them away
        await self._count_gone(num_rows, num_bytes)
        if num_aside := self.num_set_aside - num_before:
            _log.error("%d rows of the prompt log cannot be stored; see the .bad files in its spool", num_aside)

    async def _store(self, segment: Segment, rows: Sequence[LogRow]) -> None:
        """What is refused is halved, until it is a single row."""
        try:
            await self._until_it_works(lambda: self._database.insert(rows))
        except RowsRefused as refused:
            if len(rows) > 1:
                for half in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
                    await self._store(segment, half)
                return
            self._refusals.note(refused)
            await self._set_aside(segment, rows[0].record)
        else:
            self.num_stored += len(rows)
            self._on_stored(size_of(rows))
        await self._count_gone(len(rows), size_of(rows))

    async def _set_aside(self, segment: Segment, content: bytes) -> None:
        await self._until_it_works(lambda: self._spool.set_aside(segment, content))
        self.num_set_aside += 1

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
                slow.cancel()
                self.outage.note(error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                self.outage.end()
                return result
            finally:
                slow.cancel()
