"""A client that asks for one streamed completion after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self

from benchmarks.completion_stream import Completion, CompletionError, StreamReader
from benchmarks.http_client import Connection, Server


class Client:
    """Sends requests to one path, each on a new connection or all on one. Use it in a `with`.

    on_first_text: called once for each answer.
    """

    def __init__(
        self, server: Server, path: str, *, keeps_connection: bool, on_first_text: Callable[[], object] = lambda: None
    ) -> None:
        self._server = server
        self._path = path
        self._keeps_connection = keeps_connection
        self._on_first_text = on_first_text
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    async def complete(self, body: bytes) -> Completion:
        """Send a streamed request and read its answer to the end. Raises OSError or CompletionError."""
        started = time.perf_counter()
        connection = await self._usable_connection()
        try:
            return await self._exchange(connection, body, started)
        finally:
            if not self._keeps_connection:
                self._close()

    async def _exchange(self, connection: Connection, body: bytes, started: float) -> Completion:
        status = await connection.send("POST", self._path, body, is_kept=self._keeps_connection)
        if status != 200:
            text = b"".join([data async for data in connection.body()]).decode(errors="replace")
            raise CompletionError(f"status {status}: {text}")
        reader = StreamReader(started)
        has_text = False
        async for data in connection.body():
            reader.push(data)
            if reader.text_times and not has_text:
                has_text = True
                self._on_first_text()
        return reader.finish()

    async def _usable_connection(self) -> Connection:
        if self._connection is not None:
            if self._connection.can_be_used_again:
                return self._connection
            self._close()
        self._connection = await Connection.open(self._server)
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
