"""Answers to clients that speak HTTP/1.0."""

from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


class Unframed:
    """ASGI application: `app`, whose answers of unknown length end with their connection: HTTP/1.0 has no chunks.

    cycle: tells uvicorn's part in the exchange, where each piece is made to be as long as what is expected.
    """

    def __init__(self, app: ASGIApp, cycle: Callable[[], RequestResponseCycle]) -> None:
        self._app = app
        self._cycle = cycle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        cycle, is_unframed = self._cycle(), False

        async def send_unframed(message: Message) -> None:
            nonlocal is_unframed
            if message["type"] == "http.response.start":
                is_unframed = all(name.lower() != b"content-length" for name, _ in message.get("headers", ()))
                cycle.chunked_encoding = False if is_unframed else None
            elif is_unframed:
                cycle.expected_content_length = len(message.get("body", b""))
            await send(message)

        await self._app(scope, receive, send_unframed)
