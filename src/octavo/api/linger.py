"""An answer to a client that is still sending."""

import asyncio
from contextlib import suppress

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

_MAX_SECONDS = 5.0
_MAX_BYTES = 128 * 2**20


class LingeringResponse(Response):
    """Sent at once and whole, but the connection is closed only when the rest of the request has been thrown away.

    Most clients read no answer while they send, and bytes that nobody reads make the kernel reset the connection, which
    takes the answer with it.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with suppress(TimeoutError):
            async with asyncio.timeout(_MAX_SECONDS):
                await _discard(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _discard(receive: Receive) -> None:
    num_bytes = 0
    while num_bytes < _MAX_BYTES:
        message = await receive()
        num_bytes += len(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body", False):
            return
