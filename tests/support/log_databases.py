"""The databases of the prompt log, and what can happen to them.

SQLite is asked in a thread: its answer may have to wait for the log under test, which is in the same loop.
"""

import asyncio
import resource
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from support.postgres import Cluster
from support.processes import SECONDS


class AnyDatabase(Protocol):
    @property
    def url(self) -> str: ...

    async def ids(self) -> Sequence[str]:
        """Of all rows, the oldest first; asked without Octavo."""

    async def execute(self, statement: str) -> None: ...

    async def clear(self) -> None:
        """As before the first row; nobody is connected."""

    async def check(self) -> None:
        """Assert that nothing in it is damaged."""

    def locked(self) -> AbstractAsyncContextManager[None]:
        """Nobody else can write."""

    def gone(self) -> AbstractAsyncContextManager[None]:
        """Nobody can reach it."""

    def full(self) -> AbstractAsyncContextManager[None]:
        """Its files cannot grow much."""

    def read_only(self) -> AbstractAsyncContextManager[None]:
        """Nobody who connects now can write."""


IDS = "SELECT id FROM prompt_log ORDER BY created, id"
FULL_SIZE = 2 * 2**20


@contextmanager
def limited_files(size: int) -> Iterator[None]:
    """No file of this process can grow beyond so many bytes."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


class SqliteDatabase:
    def __init__(self, folder: Path) -> None:
        self.file = folder / "place" / "log.db"

    @property
    def size(self) -> int:
        """Of its file; nobody is connected."""
        return self.file.stat().st_size

    @property
    def url(self) -> str:
        return f"sqlite:///{self.file}"

    async def ids(self) -> Sequence[str]:
        return [row[0] for row in await self._rows(IDS)] if self.file.exists() else ()

    async def execute(self, statement: str) -> None:
        await self._rows(statement)

    async def clear(self) -> None:
        self.file.unlink(missing_ok=True)

    async def check(self) -> None:
        assert await self._rows("PRAGMA integrity_check") == [("ok",)]

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        with closing(self._connect()) as connection:
            await asyncio.to_thread(connection.execute, "BEGIN EXCLUSIVE")
            yield

    def _connect(self) -> sqlite3.Connection:
        """To be used in any thread, by one at a time."""
        return sqlite3.connect(self.file, timeout=SECONDS, check_same_thread=False)

    async def _rows(self, statement: str) -> Sequence[tuple[Any, ...]]:
        def rows() -> Sequence[tuple[Any, ...]]:
            with closing(self._connect()) as connection, connection:
                return connection.execute(statement).fetchall()

        return await asyncio.to_thread(rows)

    @asynccontextmanager
    async def gone(self) -> AsyncIterator[None]:
        """Its folder is another place's, as with a disk that is not mounted, and not even a folder."""
        folder, elsewhere = self.file.parent, self.file.parent.with_name("elsewhere")
        folder.rename(elsewhere)
        folder.touch()
        try:
            yield
        finally:
            folder.unlink()
            elsewhere.rename(folder)

    @asynccontextmanager
    async def full(self) -> AsyncIterator[None]:
        with limited_files(FULL_SIZE):
            yield

    @asynccontextmanager
    async def read_only(self) -> AsyncIterator[None]:
        self.file.chmod(0o400)
        try:
            yield
        finally:
            self.file.chmod(0o600)


class PostgresDatabase:
    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster = cluster
        self._name = name

    @property
    def url(self) -> str:
        return self._cluster.url(self._name)

    async def ids(self) -> Sequence[str]:
        connection = await self._cluster.connect(self._name)
        try:
            is_there = await connection.fetchval("SELECT to_regclass('prompt_log')")
            return [row["id"] for row in await connection.fetch(IDS)] if is_there else ()
        finally:
            await connection.close()

    async def execute(self, statement: str) -> None:
        connection = await self._cluster.connect(self._name)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    async def clear(self) -> None:
        await self.execute("DROP TABLE IF EXISTS prompt_log, prompt_log_schema")

    async def check(self) -> None:
        await self.execute("CREATE EXTENSION IF NOT EXISTS amcheck")
        await self.execute("SELECT bt_index_check('prompt_log_by_time', true), bt_index_check('prompt_log_pkey', true)")

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        connection = await self._cluster.connect(self._name)
        try:
            async with connection.transaction():
                await connection.execute("LOCK TABLE prompt_log IN EXCLUSIVE MODE")
                yield
        finally:
            await connection.close()

    @asynccontextmanager
    async def gone(self) -> AsyncIterator[None]:
        self._cluster.stop()
        try:
            yield
        finally:
            self._cluster.start()

    @asynccontextmanager
    async def full(self) -> AsyncIterator[None]:
        self._cluster.limit_files(str(FULL_SIZE))
        try:
            yield
        finally:
            self._cluster.limit_files("unlimited")

    @asynccontextmanager
    async def read_only(self) -> AsyncIterator[None]:
        setting = f"ALTER DATABASE {self._name} SET default_transaction_read_only"
        await self.execute(f"{setting} = on")
        try:
            yield
        finally:
            await self.execute(f"BEGIN READ WRITE; {setting} = off; COMMIT")
