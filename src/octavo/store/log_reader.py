"""Reads the prompt log's database."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, select, tuple_

from octavo.core.log_entry import LogEntry
from octavo.errors import LogEntryNotFound, PromptLogUnavailable
from octavo.store.database_place import NUM_CONNECTIONS
from octavo.store.log_database import LogDatabase, is_about_values
from octavo.store.log_page import LogPage
from octavo.store.log_query import LogQuery
from octavo.store.log_row import FEW_BYTES, FEW_ROWS
from octavo.store.log_table import (
    BY_TIME,
    PROMPT_LOG,
    WITHOUT_TEXTS,
    Place,
    first_of,
    place_in,
    storable,
    to_entry,
    to_summary,
)
from octavo.store.outage import Outage

READ_TIME = 30.0
RETRY_AFTER = 5.0
MAX_PAGE = 1000


class LogReader:
    """All methods raise PromptLogUnavailable where the database cannot be asked."""

    def __init__(self, database: LogDatabase, is_made: Callable[[], bool]) -> None:
        """is_made: False where there is no database yet. It raises OSError where there should be one."""
        self._database = database
        self._is_made = is_made
        self._outage = Outage("the prompt log cannot be read")
        # The others are for who moves rows in and who deletes them.
        self._turns = asyncio.Semaphore(NUM_CONNECTIONS - 2)

    async def page(self, query: LogQuery, max_bytes: int) -> LogPage:
        """The newest first, with no more bytes together; one, whatever its size.

        Raises LogEntryNotFound where query.before is unknown.
        """
        limit = min(query.limit, MAX_PAGE)
        keys = await self._newest_first(select(*BY_TIME, PROMPT_LOG.c.size), query, limit + 1)
        fitting = first_of(keys[:limit], max_bytes)
        return LogPage((await self._whole(fitting))[::-1], has_more=len(keys) > len(fitting))

    async def summaries(self, query: LogQuery) -> Sequence[LogEntry]:
        """The newest first; request, prompts and answer are empty. Raises LogEntryNotFound as `page` does."""
        rows = await self._newest_first(select(*WITHOUT_TEXTS), query, query.limit)
        return await asyncio.to_thread(lambda: [to_summary(row) for row in rows])

    async def entry(self, entry_id: str) -> LogEntry:
        """Raises LogEntryNotFound."""
        found = await _entries_of(await self._rows(select(PROMPT_LOG).where(PROMPT_LOG.c.id == storable(entry_id))))
        if not found:
            raise _not_found(entry_id)
        return found[0]

    async def export(self, query: LogQuery) -> AsyncIterator[LogEntry]:
        """All that fit the query, the oldest first, in pages that are read when they are needed."""
        keys = select(*BY_TIME, PROMPT_LOG.c.size).where(*_conditions(query)).order_by(*BY_TIME).limit(FEW_ROWS)
        page = first_of(await self._rows(keys), FEW_BYTES)
        while page:
            for entry in await self._whole(page):
                yield entry
            page = first_of(await self._rows(keys.where(tuple_(*BY_TIME) > place_in(page[-1]))), FEW_BYTES)

    async def _newest_first(self, columns: Select[Any], query: LogQuery, limit: int) -> Sequence[RowMapping]:
        statement = columns.where(*_conditions(query)).limit(limit)
        if query.before:
            statement = statement.where(tuple_(*BY_TIME) < await self._place_of(query.before))
        return await self._rows(statement.order_by(*(column.desc() for column in BY_TIME)))

    async def _whole(self, keys: Sequence[RowMapping]) -> Sequence[LogEntry]:
        """The rows with these ids that are still there, the oldest first."""
        if not keys:
            return ()
        ids = [row["id"] for row in keys]
        return await _entries_of(
            await self._rows(select(PROMPT_LOG).where(PROMPT_LOG.c.id.in_(ids)).order_by(*BY_TIME))
        )

    async def _place_of(self, entry_id: str) -> Place:
        rows = await self._rows(select(*BY_TIME).where(PROMPT_LOG.c.id == storable(entry_id)))
        if not rows:
            raise _not_found(entry_id)
        return place_in(rows[0])

    async def _rows(self, statement: Select[Any]) -> Sequence[RowMapping]:
        try:
            if not self._is_made():
                return ()
            async with asyncio.timeout(READ_TIME), self._turns, self._database.transaction() as connection:
                rows: Sequence[RowMapping] = (await connection.execute(statement)).mappings().all()
            self._outage.end()
            return rows
        except Exception as error:
            if is_about_values(error):  # no row has them
                return ()
            self._outage.note(error)
            message = "The prompt log cannot be read now: its database does not answer."
            raise PromptLogUnavailable(message, retry_after=RETRY_AFTER) from error


def _conditions(query: LogQuery) -> Iterator[ColumnElement[bool]]:
    for name in ("key_id", "user", "model"):
        if value := getattr(query, name):
            yield PROMPT_LOG.c[name] == storable(value)
    if query.since is not None:
        yield PROMPT_LOG.c.created >= query.since
    if query.until is not None:
        yield PROMPT_LOG.c.created < query.until


async def _entries_of(rows: Sequence[RowMapping]) -> Sequence[LogEntry]:
    """In a thread: they may be large."""
    return await asyncio.to_thread(lambda: [to_entry(row) for row in rows])


def _not_found(entry_id: str) -> LogEntryNotFound:
    return LogEntryNotFound(f"The prompt log has no entry {entry_id!r}.")
