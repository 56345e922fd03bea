"""Deletes what is too old or too much."""

import asyncio
import math
import time
from contextlib import suppress

from sqlalchemy import delete, func, select, tuple_

from octavo.store.log_database import LogDatabase
from octavo.store.log_table import BY_TIME, PROMPT_LOG, Place, first_of, place_in
from octavo.store.outage import Outage
from octavo.store.retention import Retention

INTERVAL = 60.0
MAX_SHARE = 1 / 16
"""Of the size that is kept, which may be written before it is looked at again."""
SWEEP_TIME = 60.0
_MAX_ROWS = 256
_MAX_BYTES = 16 * 2**20
_DAY = 86400

NOWHERE = (-math.inf, "")


class LogSweeper:
    """The oldest rows first, few in a transaction. Several servers may do it in the same database."""

    def __init__(self, database: LogDatabase, retention: Retention) -> None:
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
        newest = max(self._too_old(), await self._too_much())
        while await self._delete_some(newest):
            pass
        await self._database.give_back()

    def _too_old(self) -> Place:
        days = self._retention.days
        return NOWHERE if days is None else (time.time() - days * _DAY, "")

    async def _too_much(self) -> Place:
        """The newest row that is one too many; those that come later change nothing about it."""
        if self._retention.max_bytes is None:
            return NOWHERE
        total = func.sum(PROMPT_LOG.c.size).over(order_by=[column.desc() for column in BY_TIME]).label("total")
        sums = select(*BY_TIME, total).subquery()
        query = select(sums.c.created, sums.c.id).where(sums.c.total > self._retention.max_bytes)
        newest_first = query.order_by(sums.c.created.desc(), sums.c.id.desc()).limit(1)
        async with asyncio.timeout(SWEEP_TIME), self._database.transaction() as connection:
            found = (await connection.execute(newest_first)).mappings().first()
        return NOWHERE if found is None else place_in(found)

    async def _delete_some(self, newest: Place) -> bool:
        """The oldest of those up to the newest; False where there are none."""
        oldest_first = select(PROMPT_LOG.c.id, PROMPT_LOG.c.size).where(tuple_(*BY_TIME) <= newest).order_by(*BY_TIME)
        async with asyncio.timeout(SWEEP_TIME), self._database.transaction() as connection:
            found = (await connection.execute(oldest_first.limit(_MAX_ROWS))).mappings().all()
            ids = [row["id"] for row in first_of(found, _MAX_BYTES)]
            deleted = await connection.execute(delete(PROMPT_LOG).where(PROMPT_LOG.c.id.in_(ids)))
        self.num_deleted += deleted.rowcount
        return bool(ids)
