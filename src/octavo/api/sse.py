"""Server-sent events: a generation as it happens."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from octavo.api.assemble import ChunkAssembler
from octavo.api.disconnect import until_disconnect
from octavo.api.errors import error_body, internal_error, kind_of
from octavo.api.event_bytes import sse_event
from octavo.api.record import RequestRecord
from octavo.core.output import TextEvent
from octavo.errors import OctavoError
from octavo.telemetry.contained import contained

HEADERS = {"content-type": "text/event-stream", "cache-control": "no-cache", "x-accel-buffering": "no"}
DONE = b"data: [DONE]\n\n"

_logger = logging.getLogger(__name__)

TextEvents = AsyncGenerator[TextEvent, None]


class StreamedAnswer(Response):
    """Sends each event as soon as the client takes it; closes the stream when the client goes away.

    The headers wait for the first event: an error before it is an answer with its own status, and is raised. A later
    error is the last event, and then no [DONE] follows.
    """

    def __init__(self, events: TextEvents, assembler: ChunkAssembler, record: RequestRecord) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers(HEADERS)
        self._events = events
        self._assembler = assembler
        self._record = record

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await until_disconnect(receive, self._run(send))

    async def _run(self, send: Send) -> None:
        async with aclosing(self._events):
            first = await anext(self._events)
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            try:
                await send(_part(self._bytes(first)))
                async for event in self._events:
                    if chunks := self._bytes(event):
                        await send(_part(chunks))
                ending = self._assembler.flush() + DONE
            except OctavoError as error:
                ending = self._error(error)
            except Exception:
                with contained():
                    _logger.exception("request %s failed", self._record.id)
                ending = self._error(internal_error())
            await send({"type": "http.response.body", "body": ending, "more_body": False})

    def _bytes(self, event: TextEvent) -> bytes:
        """Its chunks: none for an event without text between two that have some."""
        self._record.count(event)
        return self._assembler.push(event)

    def _error(self, error: OctavoError) -> bytes:
        self._record.status, self._record.error_code = kind_of(error).status, error.code
        return sse_event(error_body(error, self._record.id))


def _part(body: bytes) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": True}
