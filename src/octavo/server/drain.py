"""The end of a server's life: new requests are refused, running ones may end."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from octavo.api.errors import error_response
from octavo.errors import EngineUnavailable

LIVENESS = "/health"
"""Answers until the end: the process lives, it only takes no more work."""


class Drain:
    """ASGI middleware, outermost. Knows how many requests run."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._num_running = 0
        self._is_draining = False
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    async def drained(self) -> None:
        """Refuse new requests from now on, and wait until none runs."""
        self._is_draining = True
        await self._is_idle.wait()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._is_draining and scope["type"] == "http" and scope["path"] != LIVENESS:
            error = EngineUnavailable("The server is stopping.")
            await error_response(error)(scope, receive, _closing(send))
            return
        self._num_running += 1
        self._is_idle.clear()
        try:
            await self._app(scope, receive, send)
        finally:
            self._num_running -= 1
            if self._num_running == 0:
                self._is_idle.set()


def _closing(send: Send) -> Send:
    """A client that is told to come back later must not come back on this connection."""

    async def send_closing(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
        await send(message)

    return send_closing
