"""A network between a client and a server that delays, slices, cuts and swallows what they say."""

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import Enum

from probes.answer import READ_BYTES, Place
from probes.sockets import ESTABLISHED, is_in_state, reset_on_close, small_socket

RECEIVE_BYTES = 2**14
"""That the kernel takes of an answer while it is not read: few, so that the server soon has to wait."""
NO_END = 2**62


class End(Enum):
    """What becomes of a connection. SILENCE: nothing more is carried in either direction, and neither side is told."""

    CLOSE = "close"
    RESET = "reset"
    SILENCE = "silence"


class Side(Enum):
    REQUEST = "request"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to the bytes of a connection, in both directions.

    piece_bytes: that are carried at once. pause: seconds before a piece. share: of the pieces that have a pause.
    end: of the connection, after a number of bytes of the request or of the answer, `side`. None: all arrives.
    """

    name: str
    piece_bytes: int = READ_BYTES
    pause: float = 0.0
    share: float = 1.0
    end: End | None = None
    side: Side = Side.ANSWER


FAULTS = (
    Fault("latency", pause=0.2),
    Fault("slices", piece_bytes=200, pause=0.0005),
    # TCP tells of a loss by a delay alone, of all that comes behind it.
    Fault("lost packets", piece_bytes=1460, pause=0.3, share=0.01),
    Fault("little bandwidth", piece_bytes=2**11, pause=0.01),
    *(Fault(f"{end.value} in mid-{side.value}", end=end, side=side) for end in End for side in Side),
    Fault("slices and a reset", piece_bytes=200, pause=0.0005, end=End.RESET),
)
"""As in toxiproxy."""


class BadNetwork:
    """A TCP proxy on a free port of this machine, whose connections have a fault.

    num_bytes: of the fault's side, that are carried before a connection's end. num_ended: connections that have come
    to it. num_pauses: pieces that were kept waiting.
    """

    def __init__(self, place: Place, fault: Fault, num_bytes: int = 0, seed: int = 0) -> None:
        self.num_ended = 0
        self.num_pauses = 0
        self._place = place
        self._fault = fault
        self._num_bytes = num_bytes
        self._random = random.Random(seed)
        self._writers: list[asyncio.StreamWriter] = []
        self._upstream: list[socket.socket] = []

    @property
    def has_acted(self) -> bool:
        """Whether the fault took place: its end, or, where it has none, a pause."""
        return (self.num_pauses if self._fault.end is None else self.num_ended) > 0

    @property
    def num_held(self) -> int:
        """Connections that the server has not ended, and this network has not either."""
        return sum(is_in_state(each, ESTABLISHED) for each in self._upstream)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Place]:
        """Where to connect. The connections stay as the fault has left them until the end."""
        server = await asyncio.start_server(self._join, "127.0.0.1", 0)
        try:
            yield Place(*server.sockets[0].getsockname()[:2])
        finally:
            server.close()
            for writer in self._writers:
                writer.transport.abort()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry what a client and the server say, until both have said all or the connection ends otherwise."""
        self._writers.append(writer)
        answers, requests = await self._connect()
        self._writers.append(requests)
        self._upstream.append(requests.get_extra_info("socket"))
        ways = (
            asyncio.create_task(self._carry(Side.REQUEST, reader, requests)),
            asyncio.create_task(self._carry(Side.ANSWER, answers, writer)),
        )
        await asyncio.wait(ways, return_when=asyncio.FIRST_EXCEPTION)
        for way in ways:
            way.cancel()
        ended = await asyncio.gather(*ways, return_exceptions=True)
        is_fault = any(isinstance(each, _Ended) for each in ended)
        self.num_ended += is_fault
        for each in (writer, requests):
            _end(each, self._fault.end if is_fault else None)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        client = await small_socket(self._place, RECEIVE_BYTES)
        return await asyncio.open_connection(sock=client, limit=RECEIVE_BYTES)

    async def _carry(self, side: Side, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Raises _Ended at the fault's end, and OSError where a side is gone."""
        ends = self._fault.end is not None and self._fault.side is side
        num_left = self._num_bytes if ends else NO_END
        while num_left > 0 and (piece := await reader.read(min(self._fault.piece_bytes, num_left))):
            if self._fault.pause and self._random.random() < self._fault.share:
                self.num_pauses += 1
                await asyncio.sleep(self._fault.pause)
            writer.write(piece)
            await writer.drain()
            num_left -= len(piece)
        if num_left == 0:
            raise _Ended
        writer.write_eof()


class _Ended(Exception):
    """So many bytes were carried as the fault lets through."""


def _end(writer: asyncio.StreamWriter, end: End | None) -> None:
    match end:
        case End.SILENCE:
            assert isinstance(writer.transport, asyncio.Transport)
            writer.transport.pause_reading()
        case End.RESET:
            with suppress(OSError):  # closed already
                reset_on_close(writer)
            writer.transport.abort()
        case End.CLOSE | None:
            writer.close()
