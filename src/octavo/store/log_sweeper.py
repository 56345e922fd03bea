"""Deletes what is too old or too much."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from octavo.store.late_database import LateDatabase
from octavo.store.outage import Outage

INTERVAL = 60.0
MAX_SHARE = 1 / 16
"""Of the size that is kept, which may be written before it is looked at again."""


@dataclass(frozen=True, slots=True)
class Retention:
    """days: after which a row is deleted. max_bytes: of all rows together, beyond which the oldest are deleted.

    None: there is no bound.
    """

    days: float | None = None
    max_bytes: int | None = None


class LogSweeper:
    """The oldest rows first, few in a transaction. Several servers may do it in the same database."""

    def __init__(self, database: LateDatabase, retention: Retention) -> None:
        self._database = database
        self._retention = retention
        self._is_due = asyncio.Event()
        self._bytes_since = 0
        self.outage = Outage("rows of the prompt log that are too old or too many cannot be deleted")
        self.num_deleted = 0

    def note_stored(self, num_bytes: int) -> None:
        """So many bytes were written."""
        self._bytes_since += num_bytes
        max_bytes = self._retention.max_bytes
        if max_bytes is not None and self._bytes_since > max_bytes * MAX_SHARE:
            self._is_due.set()

    async def run(self) -> None:
        """Without end, or until there is nothing to do for ever."""
        while self._retention != Retention():
            await self._try_to_sweep()
            with suppress(TimeoutError):
                async with asyncio.timeout(INTERVAL):
                    await self._is_due.wait()

    async def _try_to_sweep(self) -> None:
        self._is_due.clear()
        self._bytes_since = 0
        try:
            if self._database.exists:
                await self._sweep()
        except Exception as error:
            self.outage.note(error)
        else:
            self.outage.end()

    async def _sweep(self) -> None:
        from octavo.store.log_sweep import delete_up_to, newest_to_delete

        database = await self._database.opened()
        newest = await newest_to_delete(database, self._retention)
        async for num_deleted in delete_up_to(database, newest):
            self.num_deleted += num_deleted
        await database.give_back()
