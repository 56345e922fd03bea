"""What an answer is written to."""

import asyncio
import logging
import socket
import struct
from collections.abc import Callable
from typing import Any

from octavo.server.bounds import ConnectionBounds

LINGER = 5.0
"""Seconds for which is thrown away what a client still sends after its answer."""
MAX_UNSENT = 16 * 2**10
"""Bytes that the kernel takes before the client has room for them, which it would count in megabytes else."""
GONE_AFTER = 30
"""Seconds of silence, beyond what a client may take to read, after which one that says nothing at all is asked for."""

_RESET = struct.pack("ii", 1, 0)

_logger = logging.getLogger(__name__)


class ClientTransport(asyncio.Transport):
    """A connection's transport, whose `close` always comes to an end and does not cost the client its answer.

    Bytes that nobody reads make the kernel reset a connection that is closed, and most clients read no answer while
    they send. So as long as `is_receiving`, which its owner sets, closing ends our side only. While
    `is_held_back`, which it sets as well, nothing is read.

    A long answer may take its time. But a client must read `max_unread` bytes in each `max_unread_time` seconds in
    which it is waited for, or all there is.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, bounds: ConnectionBounds) -> None:
        super().__init__()
        self.is_receiving = False
        self.is_held_back = False
        self.write = transport.write  # type: ignore[method-assign]  # without a call in between, for each token
        self._transport = transport
        self._loop = loop
        self._bounds = bounds
        self._is_closing = False
        self._timer: asyncio.TimerHandle | None = None
        transport.set_write_buffer_limits(high=bounds.max_unread)
        _set_options(self._socket, bounds.max_unread_time)

    def close(self) -> None:
        if self.is_closing():
            return
        self._is_closing = True
        if not self.is_receiving:
            self._close()
            return
        self.is_held_back = False
        self.resume_reading()
        self._transport.write_eof()
        self._set_timer(LINGER, self._close)

    def close_now(self) -> None:
        """Close it without regard to what the client still sends."""
        self._is_closing = True
        self._close()

    def abort(self) -> None:
        """End it now. What the client has not read is not kept by the kernel either: a reset tells it so."""
        self._is_closing = True
        if self.get_write_buffer_size():
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()

    def watch_reading(self) -> None:
        """To be called when something waits for the client to read."""
        if not self._is_closing:
            self._watch()

    def unwatch_reading(self) -> None:
        """To be called when it waits no more."""
        if not self._is_closing:
            self._stop_timer()

    def lost(self) -> None:
        """To be called when the connection is no more."""
        self._is_closing = True
        self._stop_timer()

    def _close(self) -> None:
        self._transport.close()
        self._watch()

    def _watch(self) -> None:
        self._set_timer(self._bounds.max_unread_time, self._check, self.get_write_buffer_size())

    def _check(self, before: int) -> None:
        if before - self.get_write_buffer_size() < self._bounds.max_unread:
            _logger.info("a connection is closed: its client does not read")
            self.abort()
        else:
            self._watch()

    def _set_timer(self, seconds: float, then: Callable[..., None], *arguments: object) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(seconds, then, *arguments)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def is_closing(self) -> bool:
        return self._is_closing or self._transport.is_closing()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        if not self.is_held_back and not self._transport.is_reading():
            self._transport.resume_reading()

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    @property
    def _socket(self) -> socket.socket:
        sock = self.get_extra_info("socket")
        assert sock is not None
        return sock  # type: ignore[no-any-return]


def _set_options(sock: socket.socket, max_unread_time: float) -> None:
    """Bound what the kernel keeps for a client, and find out about those that vanished without a word."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {
        "TCP_NOTSENT_LOWAT": MAX_UNSENT,
        "TCP_KEEPIDLE": GONE_AFTER,
        "TCP_KEEPINTVL": GONE_AFTER // 3,
        "TCP_KEEPCNT": 3,
        "TCP_USER_TIMEOUT": int((max_unread_time + GONE_AFTER) * 1000),
    }
    for name, value in options.items():
        if hasattr(socket, name):  # not every system has each
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
