"""How the server itself says no, before or in place of the application."""

from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from octavo.api.errors import error_response
from octavo.errors import OctavoError
from octavo.server.refusals import Refusals

LIVENESS = "/health"
"""Answers until the end, and to the last: a process that is busy or stops is not to be killed for it."""


class Refusal:
    """ASGI application: an error in place of `app`, but for the liveness probe; then the connection ends."""

    def __init__(self, app: ASGIApp, error: OctavoError, refusals: Refusals) -> None:
        self._app = app
        self._error = error
        self._refusals = refusals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("path") == LIVENESS:
            await self._app(scope, receive, _closing(send))
            return
        self._refusals.note(self._error, scope.get("client"))
        await error_response(self._error)(scope, receive, _closing(send))


def refusal_bytes(error: OctavoError, *, has_body: bool = True) -> bytes:
    """The same answer for what is not even a request."""
    response = error_response(error)
    lines = [f"HTTP/1.1 {response.status_code} {HTTPStatus(response.status_code).phrase}".encode()]
    lines += [name + b": " + value for name, value in response.raw_headers if name != b"connection"]
    return b"\r\n".join([*lines, b"connection: close", b"", bytes(response.body) if has_body else b""])


def _closing(send: Send) -> Send:
    """A client that is told to come back later must not come back on this connection."""

    async def send_closing(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
        await send(message)

    return send_closing
