"""The prompt log: what requests with log_prompt leave behind."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from octavo.core.log_entry import LogEntry
from octavo.store.database_url import read_database_url
from octavo.store.late_database import LateDatabase
from octavo.store.log_mover import LogMover
from octavo.store.log_page import LogPage
from octavo.store.log_query import EVERYTHING, LogQuery
from octavo.store.log_sweeper import LogSweeper, Retention
from octavo.store.reservation import Reservation
from octavo.store.set_aside import SetAside
from octavo.store.spool import Spool

if TYPE_CHECKING:
    from octavo.store.log_reader import LogReader

__all__ = ["LogPage", "LogQuery", "LogStatus", "PromptLog", "Reservation", "Retention"]

CLOSE_TIME = 3.0
_CATCH_UP_TIME = 1.0
_LEAVE_TIME = 1.0


@dataclass(frozen=True, slots=True)
class LogStatus:
    """is_degraded: rows cannot be written, moved or deleted now, or are set aside; `message` says which, without an
    address or a path.

    num_waiting, waiting_bytes: rows that are durable and not yet in the database, and their size.
    Since the start of this process: num_stored, rows that went into the database; num_deleted, rows that were too old
    or too many; num_set_aside, rows that are damaged, gone or refused by the database one by one.
    set_aside: the files of the spool that have such rows, also of earlier processes.
    """

    is_degraded: bool
    message: str
    num_waiting: int
    waiting_bytes: int
    num_stored: int
    num_deleted: int
    num_set_aside: int
    set_aside: SetAside


class PromptLog:
    """Keeps entries durably, first in a spool on the disk and then, in the background, in a database.

    Made in any thread, used on one event loop. Neither the spool nor the database is made before the first entry.
    """

    def __init__(self, url: str, spool_root: Path, max_spool: int, retention: Retention) -> None:
        """url: of the database, as users write it. max_spool: bytes that may wait for it. Raises ConfigError."""
        database_url = read_database_url(url)
        self._spool = Spool(spool_root, database_url.digest, max_spool)
        self._database = LateDatabase(database_url)
        self._sweeper = LogSweeper(self._database, retention)
        self._mover = LogMover(self._spool, self._database, self._sweeper.note_stored)
        self._late_reader: LogReader | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to move rows to the database, also those that an earlier process left in the spool."""
        self._tasks = [asyncio.create_task(self._mover.run()), asyncio.create_task(self._sweeper.run())]

    async def close(self, seconds: float = CLOSE_TIME) -> None:
        """Move what is in the spool, for so long; what remains is there for the next start.

        Where it is cancelled it ends at once, and nothing is lost.
        """
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._spool.stop()
                    if self._tasks and not self._mover.outage.is_on:
                        await self._mover.drain()
        finally:
            for task in self._tasks:
                task.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_TIME):
                await asyncio.gather(*self._tasks, return_exceptions=True)
                await self._spool.close()
                await self._database.close()

    @property
    def max_row(self) -> int:
        """Bytes of a row beyond which nobody should make one: some of them would fill the spool."""
        return self._spool.max_row

    def reserve(self, num_bytes: int) -> Reservation:
        """Room for a row that comes later, of about this size.

        Raises LogEntryTooLarge, and PromptLogUnavailable: the spool is full, or could just not be written.
        """
        return self._spool.reserve(num_bytes)

    async def append(self, entry: LogEntry, reservation: Reservation | None = None) -> None:
        """Return once the entry is durable on the disk; its size takes the place of what was reserved for it.

        Where it is cancelled before it is written, it is not written. Raises as `reserve` does.
        """
        await self._spool.append(entry, reservation)

    @property
    def status(self) -> LogStatus:
        outages = (*self._spool.outages, self._mover.outage, self._mover.losses, self._sweeper.outage)
        problems = [outage.what for outage in outages if outage.is_on]
        return LogStatus(
            is_degraded=bool(problems),
            message="; ".join(problems),
            num_waiting=self._spool.num_waiting,
            waiting_bytes=self._spool.waiting_bytes,
            num_stored=self._mover.num_stored,
            num_deleted=self._sweeper.num_deleted,
            num_set_aside=self._mover.num_set_aside,
            set_aside=self._spool.aside,
        )

    async def page(self, query: LogQuery, max_bytes: int) -> LogPage:
        """The newest rows that fit, those that were appended just now included, newest first.

        They have no more than max_bytes together; one may, so that each can be read. Raises PromptLogUnavailable where
        the database cannot be asked, LogEntryNotFound where query.before is unknown.
        """
        return await (await self._reader()).page(query, max_bytes)

    async def summaries(self, query: LogQuery) -> Sequence[LogEntry]:
        """As of a page, whatever they have together: request, prompts and answer are empty. Raises as `page` does."""
        return await (await self._reader()).summaries(query)

    async def entry(self, entry_id: str) -> LogEntry:
        """Raises LogEntryNotFound, and PromptLogUnavailable where the database cannot be asked."""
        return await (await self._reader()).entry(entry_id)

    async def export(self, query: LogQuery = EVERYTHING) -> AsyncIterator[LogEntry]:
        """All that fit, the oldest first, of which few are in memory; query.limit and .before do not count.

        Raises PromptLogUnavailable.
        """
        reader = await self._reader()
        async for entry in reader.export(query):
            yield entry

    async def has_unmoved(self) -> bool:
        """Whether rows wait in the spool for this database, of whatever process. Raises OSError."""
        return await self._spool.has_rows()

    async def _reader(self) -> "LogReader":
        """So that who was just answered finds it; it does not wait where that would take long, or nobody moves rows."""
        database = await self._database.opened()  # first: rows move only after that, and it may take a while, once
        if self._tasks and not self._mover.outage.is_on:
            with suppress(TimeoutError):
                async with asyncio.timeout(_CATCH_UP_TIME):
                    await self._mover.catch_up()
        if self._late_reader is None:
            from octavo.store.log_reader import LogReader

            self._late_reader = LogReader(database, self._is_made)
        return self._late_reader

    def _is_made(self) -> bool:
        if self._database.exists:
            return True
        if self._mover.outage.is_on:
            raise FileNotFoundError("there is no file, and none can be made")
        return False
