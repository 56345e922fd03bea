"""A client's connection: uvicorn's protocol within our bounds."""

import asyncio
import logging
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from octavo.api.errors import MalformedMessage, RequestTooSlow
from octavo.errors import OctavoError, Overloaded
from octavo.server.bounds import ConnectionBounds
from octavo.server.refusal import Refusal, refusal_bytes
from octavo.server.request_body import Body, body_of
from octavo.server.request_head import HeadReader
from octavo.server.transport import ClientTransport

SPARE_CONNECTIONS = 100
"""Beyond those that are served, so that liveness probes are answered and the others told why not."""
SPARE_TIME = 1.0
"""Seconds in which a request must come on one of them."""

_logger = logging.getLogger(__name__)


class BoundedProtocol(HttpToolsProtocol):
    """One connection: its requests one after the other, each whole within its bounds or refused.

    uvicorn's protocol gives all bytes to httptools, which keeps what it cannot use yet, whatever its size, takes
    headers after a body for those before it, and loses the body of a request that would like another protocol. So
    where a request begins and ends is told here, and httptools parses heads that are whole.
    """

    transport: ClientTransport

    def __init__(self, *, bounds: ConnectionBounds, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self._bounds = bounds
        self._buffer = bytearray()
        self._heads = HeadReader(bounds.max_headers)
        self._body: Body | None = None
        """Of the request that comes in; None before its head is whole."""
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(ClientTransport(transport, self.loop, self._bounds))
        num_over = len(self.connections) - self._bounds.max_connections
        if num_over > SPARE_CONNECTIONS:
            self.transport.write(refusal_bytes(_full()))
            self.transport.close()
            return
        if num_over > 0:
            self.app = Refusal(self.app, _full())
        most = self._bounds.max_receive_time
        self._start_deadline(min(most, SPARE_TIME) if num_over > 0 else most)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport.lost()
        self._stop_deadline()
        self._buffer.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return  # what is sent after the last answer
        self._buffer += data
        self._proceed()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing():
            self._proceed()

    def _proceed(self) -> None:
        try:
            while self._step():
                pass
        except OctavoError as error:
            self._refuse(error)

    def _step(self) -> bool:
        """Whether a head or the end of a body was in the buffer."""
        if self._body is not None:
            return self._take_body(self._body)
        if self.is_answering:
            self._bound_what_comes_early()
            return False
        head = self._heads.take(self._buffer)
        if self._buffer or head is not None:
            self._begin()
        if head is None:
            return False
        self._parse(head)
        return True

    @property
    def is_answering(self) -> bool:
        """Whether the application has a request whose answer is not over."""
        return self.cycle is not None and not self.cycle.response_complete

    def _begin(self) -> None:
        """A request has begun to come."""
        self._unset_keepalive_if_required()
        self.transport.is_receiving = True
        if self._deadline is None:
            self._start_deadline(self._bounds.max_receive_time)

    def _bound_what_comes_early(self) -> None:
        """The next requests wait for the end of this one's answer, as long as they are short."""
        if len(self._buffer) > self._bounds.max_headers:
            self.cycle.keep_alive = False
            self._buffer.clear()

    def _parse(self, head: bytes) -> None:
        self.parser = httptools.HttpRequestParser(self)
        try:
            self.parser.feed_data(head)
        except httptools.HttpParserUpgrade:
            pass  # we have no other protocol; what follows is told by the headers as for all requests
        except httptools.HttpParserError as error:
            if isinstance(error.__context__, OctavoError):
                raise error.__context__ from None
            raise MalformedMessage(f"This is no HTTP/1.1 request: {error}.") from error
        if self._body is None:
            raise MalformedMessage("This is no HTTP/1.1 request.")

    def on_headers_complete(self) -> None:
        version = self.parser.get_http_version()
        if version not in ("1.0", "1.1"):
            raise MalformedMessage(f"The protocol must be HTTP/1.1, not HTTP/{version}.")
        hosts = [value for name, value in self.headers if name == b"host"]
        if len(hosts) > 1 or (version == "1.1" and not hosts):
            raise MalformedMessage("There must be one host header.")
        body = body_of(self.headers, version)
        super().on_headers_complete()
        self._body = body

    def on_message_complete(self) -> None:
        """httptools sees heads only; where a request ends is not its to say."""

    def _take_body(self, body: Body) -> bool:
        if piece := body.take(self._buffer):
            self.on_body(piece)
        if not body.is_complete:
            return False
        super().on_message_complete()
        self._body = None
        self.transport.is_receiving = False
        self._stop_deadline()
        return True

    def _start_deadline(self, seconds: float) -> None:
        self._deadline = self.loop.call_later(seconds, self._expire)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self) -> None:
        self._deadline = None
        if not self.transport.is_receiving:
            self.transport.close()  # nobody waits for an answer
        elif not self.transport.is_closing():
            seconds = self._bounds.max_receive_time
            self._refuse(RequestTooSlow(f"The request has not come in time; {seconds:g} seconds are waited for it."))

    def _refuse(self, error: OctavoError) -> None:
        """End the connection, and answer with the error where no answer has begun."""
        _logger.info("a connection is closed: %s", error.message)
        self._buffer.clear()
        if self._body is not None and self.cycle.response_started:
            self._end_begun_answer()
            return
        if self._body is not None:
            self._disconnect_application()
        self.transport.write(refusal_bytes(error))
        self.transport.is_receiving = True
        self.transport.close()

    def _end_begun_answer(self) -> None:
        if self.cycle.response_complete:
            self.transport.close()
        else:
            self.transport.abort()

    def _disconnect_application(self) -> None:
        """It waits for the rest of a body, which does not come."""
        self.cycle.disconnected = True
        self.cycle.message_event.set()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.transport.watch_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.transport.unwatch_reading()

    def shutdown(self) -> None:
        self.transport.is_receiving = False  # a server that ends waits for no requests
        super().shutdown()


def _full() -> Overloaded:
    return Overloaded("The server has as many connections as it takes; try again later.")
