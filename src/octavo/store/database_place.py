"""What is particular to a kind of database."""

import os
from collections.abc import Hashable
from typing import Any, Protocol

import aiosqlite
from sqlalchemy import URL, event, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from octavo.store.database_url import DatabaseUrl
from octavo.store.durable_files import FILE_MODE, make_folder

NUM_CONNECTIONS = 4
CONNECT_TIME = 10.0
LOCK_TIME = 1.0
"""Seconds in which SQLite itself waits for whoever writes; then we hear of it, and try again."""

_GIVE_BACK = "PRAGMA incremental_vacuum(1000); PRAGMA wal_checkpoint(PASSIVE)"
"""So many pages, and the file is shorter. As a script: a statement alone would be left after its first page."""

_COMMIT_DURABLY = """
SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'
"""
"""For the transaction. Else a crash of the server may lose rows that are no longer in the spool."""

_INCREMENTAL = 2
_FILE_SETTINGS = (
    "PRAGMA journal_mode = WAL",  # readers and the writer do not wait for each other
    "PRAGMA synchronous = FULL",
    "PRAGMA journal_size_limit = 16777216",
)


class DatabasePlace(Protocol):
    def make(self) -> None:
        """Make what can be made without the database. Raises OSError."""

    def identity(self) -> Hashable:
        """Of what is there now; None for nothing. Raises OSError."""

    def engine(self) -> AsyncEngine: ...

    async def make_durable(self, connection: AsyncConnection) -> None:
        """So that what its transaction writes is on the disk when it is committed."""

    async def give_back(self, engine: AsyncEngine) -> None:
        """Give the space of what was deleted back to the disk. Raises what the database and its driver raise."""


class FilePlace:
    """A SQLite file. Somebody can take it away, and those who have it open would not notice."""

    def __init__(self, url: DatabaseUrl) -> None:
        self._url = url

    def make(self) -> None:
        make_folder(self._url.file.parent)
        os.close(os.open(self._url.file, os.O_RDONLY | os.O_CREAT, FILE_MODE))

    def identity(self) -> Hashable:
        try:
            found = self._url.file.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def engine(self) -> AsyncEngine:
        engine = _engine(self._url, timeout=LOCK_TIME)
        event.listen(engine.sync_engine, "connect", _set_up_file)
        return engine

    async def make_durable(self, connection: AsyncConnection) -> None:
        """All of its transactions are."""

    async def give_back(self, engine: AsyncEngine) -> None:
        """A part at a time, so that writers get their turn."""
        while await self._give_some_back(engine):
            pass

    async def _give_some_back(self, engine: AsyncEngine) -> bool:
        async with engine.begin() as connection:
            if not await connection.scalar(text("PRAGMA freelist_count")):
                return False
            driver = (await connection.get_raw_connection()).driver_connection
            assert isinstance(driver, aiosqlite.Connection)
            await driver.executescript(_GIVE_BACK)
        return True


class ServerPlace:
    """A PostgreSQL database."""

    def __init__(self, url: DatabaseUrl) -> None:
        self._url = url

    def make(self) -> None:
        pass

    def identity(self) -> Hashable:
        return self._url.digest

    def engine(self) -> AsyncEngine:
        return _engine(self._url, timeout=CONNECT_TIME)

    async def make_durable(self, connection: AsyncConnection) -> None:
        await connection.execute(text(_COMMIT_DURABLY))

    async def give_back(self, engine: AsyncEngine) -> None:
        """It does so by itself."""


def place_of(url: DatabaseUrl) -> DatabasePlace:
    return FilePlace(url) if url.is_file else ServerPlace(url)


def _engine(url: DatabaseUrl, timeout: float) -> AsyncEngine:
    return create_async_engine(
        URL.create(
            f"{url.kind}+{url.driver}",
            url.username or None,
            url.password or None,
            url.host or None,
            url.port,
            url.database,
            url.query,
        ),
        connect_args={"timeout": timeout},
        pool_size=NUM_CONNECTIONS,
        max_overflow=0,
        pool_timeout=CONNECT_TIME,
        pool_pre_ping=True,
        hide_parameters=True,  # they are prompts
    )


def _set_up_file(connection: Any, _: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA auto_vacuum")
    if cursor.fetchone()[0] != _INCREMENTAL:
        # Said once, before all else, so that deleted rows can give back their space.
        cursor.execute("PRAGMA auto_vacuum = INCREMENTAL")
    for setting in _FILE_SETTINGS:
        cursor.execute(setting)
    cursor.close()
