"""The database of the prompt log."""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager

from sqlalchemy import Table, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from octavo.store.database_place import place_of
from octavo.store.database_url import DatabaseUrl
from octavo.store.log_row import LogRow, size_of
from octavo.store.log_table import METADATA, PROMPT_LOG, SCHEMA, SCHEMA_VERSION

_INSERTS: Mapping[str, Callable[[Table], sqlite.Insert | postgresql.Insert]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}
_VALUE_ERRORS = ("22", "23", "54")
"""Classes of SQLSTATE: what is wrong with data, with integrity, and too much for the database."""
_WRITE_TIME = 30.0
_WRITE_SPEED = 2**17
"""Seconds, and bytes a second, after which a write is taken for hanging."""


class RowsRefused(Exception):
    """The database works, and does not take one of the rows."""


class NewerSchema(Exception):
    """A later version of Octavo has made the tables."""


class LogDatabase:
    """Connects when it is used, and makes its tables then. For one event loop."""

    def __init__(self, url: DatabaseUrl) -> None:
        self._place = place_of(url)
        self._engine = self._place.engine()
        insert = _INSERTS[url.url.get_backend_name()]
        self._insert = insert(PROMPT_LOG).on_conflict_do_nothing(index_elements=["id"])
        self._insert_version = insert(SCHEMA).values(version=SCHEMA_VERSION).on_conflict_do_nothing()
        self._turn = asyncio.Lock()
        self._prepared: Hashable = None  # the identity of the place with our tables

    @property
    def exists(self) -> bool:
        """False where there is not even a file. Raises OSError."""
        return self._place.identity() is not None

    async def insert(self, rows: Sequence[LogRow]) -> None:
        """Those that are not there yet. Raises RowsRefused, and what the database and its driver raise."""
        values = [row.values for row in rows]
        async with asyncio.timeout(_WRITE_TIME + size_of(rows) / _WRITE_SPEED), self.transaction() as connection:
            try:
                await connection.execute(self._insert, values)
            except Exception as error:
                if is_about_values(error):
                    raise RowsRefused(type(error).__name__) from error
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
        except RowsRefused:
            raise
        except Exception:
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
