"""uvicorn, as Octavo uses it."""

import asyncio
import socket
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, cast

import uvicorn

from octavo.server.bounds import ConnectionBounds
from octavo.server.drain import Drain
from octavo.server.listener import BACKLOG
from octavo.server.open_files import allow_open_files
from octavo.server.protocol import BoundedProtocol
from octavo.server.refusals import Refusals
from octavo.server.spare_connections import SPARE_CONNECTIONS, SpareConnections

KEEP_ALIVE = 30
"""Seconds. Longer than clients keep a connection for later use, so that theirs is the side that closes."""
LAST_BYTES = 0.5
"""Seconds for what has been answered to be read, when the server ends."""
READING_INTERVAL = 0.02
"""Seconds between two looks at whether all has been read."""


class HttpServer(uvicorn.Server):
    """uvicorn with our settings. Signals are not its business."""

    def __init__(self, app: Drain, bounds: ConnectionBounds, refusals: Refusals) -> None:
        num_possible = allow_open_files(bounds.max_connections + SPARE_CONNECTIONS) - SPARE_CONNECTIONS
        bounds = replace(bounds, max_connections=max(1, num_possible))
        protocol = partial(BoundedProtocol, bounds=bounds, spares=SpareConnections(), refusals=refusals)
        config = uvicorn.Config(
            app,
            http=cast(Any, protocol),  # which uvicorn calls, and never asks what it is
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,  # the API logs one line per request itself
            proxy_headers=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=1,  # longer than LAST_BYTES, after which nothing is left to wait for
        )
        config.load()  # imports the protocol, which `serve` would otherwise do on the event loop
        super().__init__(config)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    @property
    def num_connections(self) -> int:
        return len(self.server_state.connections)

    async def answers_read(self) -> None:
        """Wait until clients have read all that has been answered, or were left because they do not read."""
        while unread := [each for each in self._connections() if each.has_unread_answer]:
            for connection in unread:
                connection.transport.close()
            await asyncio.sleep(READING_INTERVAL)

    def stop(self, *, at_once: bool) -> None:
        """End `serve`. Answers that are not over are broken off; the others get a moment to be read, or none."""
        if at_once:
            self.force_exit = True
        self.should_exit = True
        for connection in self._connections():
            if at_once or connection.is_answering:
                connection.transport.abort()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        last_moment = asyncio.get_running_loop().call_later(LAST_BYTES, self._break_off)
        try:
            await super().shutdown(sockets)
        finally:
            last_moment.cancel()

    def _break_off(self) -> None:
        for connection in self._connections():
            connection.transport.abort()

    def _connections(self) -> list[BoundedProtocol]:
        return [each for each in self.server_state.connections if isinstance(each, BoundedProtocol)]
