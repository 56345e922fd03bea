"""The end of a server's life: new requests are refused, running ones may end."""

import asyncio
import logging

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from octavo.api.errors import error_response, internal_error, record_error
from octavo.errors import EngineUnavailable
from octavo.server.refusal import LIVENESS, Refusal
from octavo.server.refusals import Refusals

_ANSWERED = frozenset({LIVENESS, "/metrics"})
"""To the last: whoever watches the server wants to see how it ends."""

_logger = logging.getLogger(__name__)


class Drain:
    """ASGI middleware, outermost. Knows which requests run."""

    def __init__(self, app: ASGIApp, refusals: Refusals) -> None:
        self._app = app
        self._refusal = Refusal(app, _stopping(), refusals)
        self._running: set[_Exchange] = set()
        self._is_draining = False
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    async def drained(self) -> None:
        """Refuse new requests from now on, and wait until none runs."""
        self._is_draining = True
        await self._is_idle.wait()

    def refuse_unanswered(self) -> None:
        """Give up the requests of which no byte of an answer has been sent: they are told that the server stops."""
        for exchange in self._running:
            exchange.give_up()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._is_draining and scope["type"] == "http" and scope["path"] not in _ANSWERED:
            await self._refusal(scope, receive, send)
            return
        exchange = _Exchange(scope, send)
        self._running.add(exchange)
        self._is_idle.clear()
        try:
            await exchange.run(self._app, scope, receive)
            if exchange.is_given_up and not exchange.has_answer:
                await self._refusal(scope, receive, send)
        finally:
            self._running.discard(exchange)
            if not self._running:
                self._is_idle.set()


class _Exchange:
    """A request and its answer."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.is_given_up = False
        self.has_answer = False
        self._scope = scope
        self._send = send
        self._task = asyncio.current_task()

    def give_up(self) -> None:
        if not self.has_answer and not self.is_given_up and self._task is not None:
            self.is_given_up = True
            record_error(self._scope, _stopping())
            self._task.cancel()

    async def run(self, app: ASGIApp, scope: Scope, receive: Receive) -> None:
        try:
            await app(scope, receive, self._send_noting)
        except asyncio.CancelledError:
            if not self.is_given_up or self.has_answer:
                raise
        except Exception:
            if self.has_answer:
                raise
            _logger.exception("a request failed outside of what answers it")
            await error_response(internal_error())(scope, receive, self._send_noting)

    async def _send_noting(self, message: Message) -> None:
        self.has_answer = True
        await self._send(message)


def _stopping() -> EngineUnavailable:
    return EngineUnavailable("The server is stopping.")
