"""uvicorn, as Octavo uses it."""

from collections.abc import Generator
from contextlib import contextmanager

import uvicorn

from octavo.server.drain import Drain
from octavo.server.listener import BACKLOG

KEEP_ALIVE = 30
"""Seconds. Longer than clients keep a connection for later use, so that theirs is the side that closes."""
LAST_WORDS = 1
"""Seconds for answers to leave the process after they have been ended."""


class HttpServer(uvicorn.Server):
    """uvicorn with our settings. Signals are not its business."""

    def __init__(self, app: Drain) -> None:
        config = uvicorn.Config(
            app,
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,  # the API logs one line per request itself
            proxy_headers=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=LAST_WORDS,
        )
        config.load()  # imports the protocol, which `serve` would otherwise do on the event loop
        super().__init__(config)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    def stop(self, *, at_once: bool) -> None:
        """End `serve`; open connections get a moment, or none."""
        if at_once:
            self.config.timeout_graceful_shutdown = 0
            self.force_exit = True
        self.should_exit = True
