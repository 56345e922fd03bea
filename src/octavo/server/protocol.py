"""A client's connection: uvicorn's protocol within our bounds."""

import asyncio
import re
from functools import partial
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from octavo.api.errors import MalformedMessage, RequestTooSlow
from octavo.core.delivery import set_delivery
from octavo.errors import OctavoError, Overloaded
from octavo.server.bounds import ConnectionBounds
from octavo.server.refusal import Refusal, refusal_bytes
from octavo.server.refusals import Refusals
from octavo.server.request_body import Body, body_of
from octavo.server.request_head import HeadReader
from octavo.server.spare_connections import SPARE_TIME, SpareConnections
from octavo.server.transport import ClientTransport
from octavo.server.unframed import Unframed

_LINE = re.compile(rb"[A-Za-z-]+ [^ \r\n]+ HTTP/[0-9]\.[0-9]\r\n")
_SPACE_BEHIND = re.compile(rb"(?<=[^ \t\r\n])[ \t]+(?=\r\n)")
"""A value: it means nothing, and httptools takes it for a part of some."""
_AUTHORITY = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?([^/?#]+)")
"""Of a target in absolute form."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection: its requests one after the other, each whole within its bounds or refused.

    uvicorn's protocol gives all bytes to httptools, which keeps what it cannot use yet, whatever its size, takes
    headers after a body for those before it, and loses the body of a request that would like another protocol. So
    where a request begins and ends is told here, and httptools parses heads that are whole.
    """

    transport: ClientTransport

    def __init__(
        self, *, bounds: ConnectionBounds, spares: SpareConnections, refusals: Refusals, **uvicorns: Any
    ) -> None:
        super().__init__(**uvicorns)
        self._bounds = bounds
        self._spares = spares
        self._refusals = refusals
        self._buffer = bytearray()
        self._heads = HeadReader(bounds.max_headers)
        self._body: Body | None = None
        """Of the request that comes in; None before its head is whole."""
        self._is_for_headers = False
        """Whether the request that comes in begins with the method HEAD, which gets no body with its answer."""
        self._stays_open = False
        """After the answer to the present request, where that has come whole by then."""
        self._deadline: asyncio.TimerHandle | None = None
        self._is_cut = False
        """Whether the connection was lost with more to send than a client may leave unread."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(ClientTransport(transport, self.loop, self._bounds))
        if len(self.connections) - len(self._spares) <= self._bounds.max_connections:
            self._start_deadline(self._bounds.max_receive_time)
            return
        self._spares.add(self)
        self.app = Refusal(self.app, _full(), self._refusals)
        self._start_deadline(min(self._bounds.max_receive_time, SPARE_TIME))

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_cut = self.flow.write_paused
        self._spares.discard(self)
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
        self._is_for_headers = self._buffer.startswith(b"HEAD ")
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

    @property
    def has_unread_answer(self) -> bool:
        """Whether a whole answer has not left the process yet."""
        return not self.is_answering and self.transport.get_write_buffer_size() > 0

    async def _delivered(self, cycle: RequestResponseCycle) -> bool:
        """As a `Delivery` of the cycle's answer; the next request may have begun."""
        if self.flow.write_paused:
            await self.flow.drain()
        return cycle.response_complete and not self._is_cut

    def make_room(self) -> None:
        if not self.transport.is_closing() and not self.is_answering:
            self._tell(_full())
        self.transport.close_now()

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
            self.transport.is_receiving = True
            self._buffer.clear()

    def _parse(self, head: bytes) -> None:
        if _LINE.match(head) is None:
            raise MalformedMessage("This is no HTTP/1.1 request: its line is not METHOD PATH HTTP/1.1.")
        self.parser = httptools.HttpRequestParser(self)
        try:
            self.parser.feed_data(_SPACE_BEHIND.sub(b"", head))
        except httptools.HttpParserUpgrade:
            pass  # we have no other protocol; what follows is told by the headers as for all requests
        except httptools.HttpParserError as error:
            if isinstance(error.__context__, OctavoError):
                raise error.__context__ from None
            if isinstance(error.__context__, httptools.HttpParserInvalidURLError):
                raise MalformedMessage("A request must be for a path, or for a URL with one.") from error
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
        self._check_authority(hosts)
        body = body_of(self.headers, version)
        if version == "1.0":
            self.expect_100_continue = False
            self.app = Unframed(self.app, lambda: self.cycle)  # for good: such a connection has one request
        super().on_headers_complete()
        set_delivery(cast(dict[str, Any], self.scope), partial(self._delivered, self.cycle))
        self._body = body
        self._stays_open = self.cycle.keep_alive
        self.cycle.keep_alive = False  # who is answered before the body has come may send it or not: nobody can tell

    def _check_authority(self, hosts: list[bytes]) -> None:
        found = _AUTHORITY.match(self.url)
        if found is not None and [found[1].lower()] != [host.lower() for host in hosts]:
            raise MalformedMessage("The host of the URL and that of the host header must be the same.")

    def on_message_complete(self) -> None:
        """httptools sees heads only; where a request ends is not its to say."""

    def _take_body(self, body: Body) -> bool:
        if piece := body.take(self._buffer):
            self.on_body(piece)
        if not body.is_complete:
            self._hold_back(body.has_more)
            return False
        self._hold_back(False)
        if not self.cycle.response_started:
            self.cycle.keep_alive = self._stays_open
        super().on_message_complete()
        self._body = None
        self.transport.is_receiving = False
        self._stop_deadline()
        return True

    def _hold_back(self, has_more: bool) -> None:
        """Read on when what has come is taken."""
        if has_more:
            self.transport.is_held_back = True
            self.transport.pause_reading()
            self.loop.call_soon(self._proceed_with_body)
        elif self.transport.is_held_back:
            self.transport.is_held_back = False
            if not self.flow.read_paused:
                self.transport.resume_reading()

    def _proceed_with_body(self) -> None:
        if not self.transport.is_closing():
            self._proceed()

    def _start_deadline(self, seconds: float) -> None:
        self._deadline = self.loop.call_later(seconds, self._expire)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self) -> None:
        self._deadline = None
        if self in self._spares:
            self.make_room()
        elif not self.transport.is_receiving:
            self.transport.close()  # nobody waits for an answer
        elif not self.transport.is_closing():
            self._refuse(_too_slow(self._bounds.max_receive_time))

    def _refuse(self, error: OctavoError) -> None:
        """End the connection, and answer with the error where no answer has begun."""
        self._buffer.clear()
        if self._body is not None and self.cycle.response_started:
            self._end_begun_answer()
            return
        if self._body is not None:
            self._disconnect_application()
        self._tell(error)
        self.transport.is_receiving = True
        self.transport.close()

    def _tell(self, error: OctavoError) -> None:
        self._refusals.note(error, self.client)
        self.transport.write(refusal_bytes(error, has_body=not self._is_for_headers))

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
        self._stays_open = False
        super().shutdown()


def _too_slow(seconds: float) -> RequestTooSlow:
    return RequestTooSlow(f"The request has not come in time; {seconds:g} seconds are waited for it.")


def _full() -> Overloaded:
    return Overloaded("The server has as many connections as it takes; try again later.")
