"""The database of the prompt log."""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import Table, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from octavo.core.log_entry import LogEntry
from octavo.store.database_place import place_of
from octavo.store.database_url import DatabaseUrl
from octavo.store.log_row import LogRow, RowsRefused
from octavo.store.log_table import METADATA, PROMPT_LOG, SCHEMA, SCHEMA_VERSION, to_values
from octavo.store.outage import reason_of

_INSERTS: Mapping[str, Callable[[Table], sqlite.Insert | postgresql.Insert]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}
_VALUE_ERRORS = ("22", "23", "54")
"""Classes of SQLSTATE: what is wrong with data, with integrity, and too much for the database."""
_WRITE_TIME = 30.0
_WRITE_SPEED = 2**17
"""Seconds, and bytes a second, after which a write is taken for hanging."""
_TEXT = "ordinary " * 100
_ORDINARY = to_values(
    LogEntry(
        id="cmpl-ordinary",
        request_id=_TEXT[:36],
        created=0.0,
        key_id=_TEXT[:36],
        user=_TEXT[:36],
        endpoint="/v1/chat/completions",
        model=_TEXT[:36],
        status=200,
        request=_TEXT,
        prompts=(_TEXT,),
        answer=_TEXT,
        finish_reasons=("stop",),
        prompt_tokens=100,
        completion_tokens=100,
        cached_tokens=0,
        seconds=1.0,
    ),
    size=3 * len(_TEXT),
)
"""A row that a table of ours takes."""


class TableRefuses(Exception):
    """The table takes no rows at all, however ordinary."""


class NewerSchema(Exception):
    """A later version of Octavo has made the tables."""


class LogDatabase:
    """Connects when it is used, and makes its tables then. For one event loop."""

    def __init__(self, url: DatabaseUrl) -> None:
        self._place = place_of(url)
        self._engine = self._place.engine()
        insert = _INSERTS[url.kind]
        self._insert = insert(PROMPT_LOG).on_conflict_do_nothing(index_elements=["id"])
        self._insert_version = insert(SCHEMA).values(version=SCHEMA_VERSION).on_conflict_do_nothing()
        self._turn = asyncio.Lock()
        self._prepared: Hashable = None  # the identity of the place with our tables

    async def insert(self, rows: Sequence[LogRow]) -> None:
        """Those that are not there yet. Raises RowsRefused, TableRefuses, and what the database and driver raise."""
        try:
            await self._insert_all(await asyncio.to_thread(lambda: [to_values(row.entry, row.size) for row in rows]))
        except Exception as error:
            if not is_about_values(error):
                raise
            await self._check_that_an_ordinary_row_is_taken()
            raise RowsRefused(reason_of(error)) from error

    async def _insert_all(self, values: Sequence[Mapping[str, Any]]) -> None:
        seconds = _WRITE_TIME + sum(row["size"] for row in values) / _WRITE_SPEED
        async with asyncio.timeout(seconds), self.transaction() as connection:
            await self._place.make_durable(connection)
            await connection.execute(self._insert, values)

    async def _check_that_an_ordinary_row_is_taken(self) -> None:
        """Else it is not the row that is at fault. Raises TableRefuses, and what the database and its driver raise."""
        async with asyncio.timeout(_WRITE_TIME), self._engine.connect() as connection:  # nothing is committed
            try:
                await connection.execute(self._insert, [_ORDINARY])
            except Exception as error:
                if is_about_values(error):
                    raise TableRefuses(reason_of(error)) from error
                raise

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """Committed at the end of the block. Raises what the database and its driver raise."""
        try:
            identity = await self._prepare()
            async with self._engine.begin() as connection:
                yield connection
            if self._place.identity() != identity:
                raise FileNotFoundError("its file was taken away")
        except Exception as error:
            if not is_about_values(error):
                self._prepared = None  # connections may be broken, or to what is there no more
            raise

    async def give_back(self) -> None:
        """Give the space of rows that were deleted back to the disk. Raises what the database and its driver raise."""
        await self._place.give_back(self._engine)

    async def close(self) -> None:
        await self._engine.dispose()

    async def _prepare(self) -> Hashable:
        """The identity of what is used from now on."""
        async with self._turn:
            if self._prepared is None or self._place.identity() != self._prepared:
                await self._engine.dispose()
                self._place.make()
                await self._make_tables()
                self._prepared = self._place.identity()
            return self._prepared

    async def _make_tables(self) -> None:
        try:
            await self._check_tables()
        except SQLAlchemyError:  # also where another server makes them at the same moment; then they are there now
            await self._check_tables()

    async def _check_tables(self) -> None:
        async with self._engine.begin() as connection:
            await connection.run_sync(METADATA.create_all)
            version = await connection.scalar(select(func.max(SCHEMA.c.version)))
            if version is None:  # else nothing is written, so that rows can be read where they cannot be written
                await connection.execute(self._insert_version)
                version = SCHEMA_VERSION
        if version > SCHEMA_VERSION:
            raise NewerSchema(f"its tables have version {version}; this Octavo knows {SCHEMA_VERSION}")


def is_about_values(error: Exception) -> bool:
    """Whether it says that a row cannot be stored, rather than that the database cannot store any."""
    if not isinstance(error, DBAPIError):
        return isinstance(error, OverflowError | UnicodeError)  # the driver could not even send it
    state = str(getattr(error.orig, "sqlstate", None) or "")
    return isinstance(error, DataError | IntegrityError) or state.startswith(_VALUE_ERRORS)
