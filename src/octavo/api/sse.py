"""Server-sent events: a generation as it happens."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from octavo.api.assemble import ChunkAssembler
from octavo.api.disconnect import until_disconnect
from octavo.api.errors import error_body, internal_error, kind_of
from octavo.api.record import RequestRecord
from octavo.api.schemas.common import WireData
from octavo.core.output import TextEvent
from octavo.errors import OctavoError

HEADERS = {"content-type": "text/event-stream", "cache-control": "no-cache", "x-accel-buffering": "no"}
DONE = b"data: [DONE]\n\n"

_encode = msgspec.json.Encoder().encode
_logger = logging.getLogger(__name__)

TextEvents = AsyncGenerator[TextEvent, None]


LINE_ENDS = {"\u0085": b"\\u0085", "\u2028": b"\\u2028", "\u2029": b"\\u2029"}
"""Clients that split lines as Python does split them at these characters too. In JSON they can only be in strings."""


def sse_event(data: Any) -> bytes:
    text = _encode(data)
    for character, escaped in LINE_ENDS.items():
        text = text.replace(character.encode(), escaped)
    return b"data: %b\n\n" % text


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
            async with aclosing(self._payloads(first)) as payloads:
                async for payload in payloads:
                    if not payload:  # an event without text, between two that have some
                        continue
                    await send({"type": "http.response.body", "body": payload, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _payloads(self, first: TextEvent) -> AsyncGenerator[bytes, None]:
        try:
            yield self._payload(first)
            async for event in self._events:
                yield self._payload(event)
        except OctavoError as error:
            yield self._error(error)
        except Exception:
            _logger.exception("request %s failed", self._record.id)
            yield self._error(internal_error())
        else:
            yield _joined(self._assembler.flush()) + DONE

    def _payload(self, event: TextEvent) -> bytes:
        self._record.count(event)
        return _joined(self._assembler.push(event))

    def _error(self, error: OctavoError) -> bytes:
        self._record.status = kind_of(error).status
        return sse_event(error_body(error))


def _joined(chunks: list[WireData]) -> bytes:
    return b"".join(map(sse_event, chunks))
