"""Reads the prompt log's database."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, select, tuple_

from octavo.core.log_entry import LogEntry
from octavo.errors import LogEntryNotFound, PromptLogUnavailable
from octavo.store.database_place import NUM_CONNECTIONS
from octavo.store.log_database import LogDatabase
from octavo.store.log_query import LogQuery
from octavo.store.log_table import BY_TIME, PROMPT_LOG, Place, first_of, place_in, storable, to_entry
from octavo.store.outage import Outage

READ_TIME = 30.0
RETRY_AFTER = 5.0
_PAGE_ROWS = 256
_PAGE_BYTES = 4 * 2**20


class LogReader:
    """All methods raise PromptLogUnavailable where the database cannot be asked."""

    def __init__(self, database: LogDatabase) -> None:
        self._database = database
        self._outage = Outage("the prompt log cannot be read")
        # The others are for who moves rows in and who deletes them.
        self._turns = asyncio.Semaphore(NUM_CONNECTIONS - 2)

    async def entries(self, query: LogQuery) -> Sequence[LogEntry]:
        """The newest first. Raises LogEntryNotFound where query.before is unknown."""
        statement = select(PROMPT_LOG).where(*_conditions(query)).limit(query.limit)
        if query.before:
            statement = statement.where(tuple_(*BY_TIME) < await self._place_of(query.before))
        return await _entries_of(await self._rows(statement.order_by(*(column.desc() for column in BY_TIME))))

    async def entry(self, entry_id: str) -> LogEntry:
        """Raises LogEntryNotFound."""
        found = await _entries_of(await self._rows(select(PROMPT_LOG).where(PROMPT_LOG.c.id == storable(entry_id))))
        if not found:
            raise _not_found(entry_id)
        return found[0]

    async def export(self) -> AsyncIterator[LogEntry]:
        """All of them, the oldest first, in pages that are read when they are needed."""
        keys = select(*BY_TIME, PROMPT_LOG.c.size).order_by(*BY_TIME).limit(_PAGE_ROWS)
        page = first_of(await self._rows(keys), _PAGE_BYTES)
        while page:
            whole = select(PROMPT_LOG).where(PROMPT_LOG.c.id.in_([row["id"] for row in page])).order_by(*BY_TIME)
            for entry in await _entries_of(await self._rows(whole)):
                yield entry
            last = place_in(page[-1])
            page = first_of(await self._rows(keys.where(tuple_(*BY_TIME) > last)), _PAGE_BYTES)

    async def _place_of(self, entry_id: str) -> Place:
        rows = await self._rows(select(*BY_TIME).where(PROMPT_LOG.c.id == storable(entry_id)))
        if not rows:
            raise _not_found(entry_id)
        return place_in(rows[0])

    async def _rows(self, statement: Select[Any]) -> Sequence[RowMapping]:
        try:
            if not self._database.exists:
                return ()
            async with asyncio.timeout(READ_TIME), self._turns, self._database.transaction() as connection:
                rows: Sequence[RowMapping] = (await connection.execute(statement)).mappings().all()
            self._outage.end()
            return rows
        except Exception as error:
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
