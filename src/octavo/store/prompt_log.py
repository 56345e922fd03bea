"""The prompt log: what requests with log_prompt leave behind."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import suppress
from pathlib import Path

from octavo.core.log_entry import LogEntry
from octavo.store.database_url import read_database_url
from octavo.store.log_database import LogDatabase
from octavo.store.log_mover import LogMover
from octavo.store.log_query import LogQuery
from octavo.store.log_reader import LogReader
from octavo.store.log_row import encode_row
from octavo.store.log_status import LogStatus
from octavo.store.log_sweeper import LogSweeper
from octavo.store.retention import Retention
from octavo.store.spool import Spool

__all__ = ["LogQuery", "LogStatus", "PromptLog", "Retention"]

_CATCH_UP_TIME = 1.0
_CLOSE_TIME = 3.0


class PromptLog:
    """Keeps entries durably, first in a spool on the disk and then, in the background, in a database.

    Made in any thread, used on one event loop. Neither the spool nor the database is made before the first entry.
    """

    def __init__(self, url: str, spool_root: Path, max_spool: int, retention: Retention) -> None:
        """url: of the database, as users write it. max_spool: bytes that may wait for it. Raises ConfigError."""
        database_url = read_database_url(url)
        self._spool = Spool(spool_root, database_url.digest, max_spool)
        self._database = LogDatabase(database_url)
        self._sweeper = LogSweeper(self._database, retention)
        self._mover = LogMover(self._spool, self._database, self._sweeper.note_stored)
        self._reader = LogReader(self._database)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to move rows to the database, also those that an earlier process left in the spool."""
        self._tasks = [asyncio.create_task(self._mover.run()), asyncio.create_task(self._sweeper.run())]

    async def close(self) -> None:
        """Move what is in the spool, for a bounded time; what remains is there for the next start."""
        await within(_CLOSE_TIME, self._spool.stop())
        if self._tasks and not self._mover.outage.is_on:
            await self._mover.drain(_CLOSE_TIME)
        for task in self._tasks:
            task.cancel()
        await within(_CLOSE_TIME, asyncio.gather(*self._tasks, return_exceptions=True))
        await within(_CLOSE_TIME, self._database.close())
        await within(_CLOSE_TIME, self._spool.close())

    def check(self) -> None:
        """Raise PromptLogUnavailable where `append` would: the spool is full, or could just not be written."""
        self._spool.check()

    async def append(self, entry: LogEntry) -> None:
        """Return once the entry is durable on the disk. Raises PromptLogUnavailable."""
        await self._spool.append(encode_row(entry))

    @property
    def status(self) -> LogStatus:
        outages = (self._spool.outage, self._mover.outage, self._sweeper.outage)
        problems = [outage.what for outage in outages if outage.is_on]
        return LogStatus(
            is_degraded=bool(problems),
            message="; ".join(problems),
            num_waiting=self._spool.num_waiting,
            waiting_bytes=self._spool.waiting_bytes,
            num_stored=self._mover.num_stored,
            num_deleted=self._sweeper.num_deleted,
            num_set_aside=self._mover.num_set_aside,
            num_failures=sum(outage.num_failures for outage in outages),
        )

    async def entries(self, query: LogQuery) -> Sequence[LogEntry]:
        """The newest first, those that were appended just now included.

        Raises PromptLogUnavailable where the database cannot be asked, LogEntryNotFound where query.before is unknown.
        """
        await self._catch_up()
        return await self._reader.entries(query)

    async def entry(self, entry_id: str) -> LogEntry:
        """Raises LogEntryNotFound, and PromptLogUnavailable where the database cannot be asked."""
        await self._catch_up()
        return await self._reader.entry(entry_id)

    async def export(self) -> AsyncIterator[LogEntry]:
        """All entries, the oldest first, of which few are in memory. Raises PromptLogUnavailable."""
        await self._catch_up()
        async for entry in self._reader.export():
            yield entry

    async def _catch_up(self) -> None:
        """So that who was just answered finds it; not where that would take long, or nobody moves rows."""
        if self._tasks and not self._mover.outage.is_on:
            await self._mover.catch_up(_CATCH_UP_TIME)


async def within(seconds: float, work: Awaitable[object]) -> None:
    """Until it is done, or the time is over."""
    with suppress(TimeoutError):
        await asyncio.wait_for(work, seconds)
