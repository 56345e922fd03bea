"""The prompt log's database, when it is needed."""

import asyncio
from typing import TYPE_CHECKING

from octavo.store.database_url import DatabaseUrl

if TYPE_CHECKING:
    from octavo.store.log_database import LogDatabase


class LateDatabase:
    """Its library is large: it is imported when there is something to store or to read. For one event loop."""

    def __init__(self, url: DatabaseUrl) -> None:
        self._url = url
        self._turn = asyncio.Lock()
        self._database: LogDatabase | None = None

    @property
    def exists(self) -> bool:
        """False where there is not even a file. Raises OSError."""
        return self._url.exists

    async def opened(self) -> "LogDatabase":
        async with self._turn:
            if self._database is None:
                self._database = await asyncio.to_thread(_database_of, self._url)
            return self._database

    async def close(self) -> None:
        if self._database is not None:
            await self._database.close()


def _database_of(url: DatabaseUrl) -> "LogDatabase":
    from octavo.store.log_database import LogDatabase

    return LogDatabase(url)
