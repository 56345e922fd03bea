"""An answer as it came, and raw connections on which anything can be sent."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httptools
import httpx

SECONDS = 60.0
"""Until a server that does not answer is a failure; nothing is measured with it."""
READ_BYTES = 2**16
CONTINUE = 100
"""The status that says that a body may come; an answer follows it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """status: 0 where the connection was closed without an answer. headers: by their lower-case names.

    is_whole: whether all of it came, by its framing. has_more: whether something came behind it.
    """

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_whole: bool = True
    has_more: bool = False

    @classmethod
    def of(cls, response: httpx.Response) -> "Answer":
        return cls(response.status_code, dict(response.headers.items()), response.content)


NO_ANSWER = Answer(0, is_whole=False)


@dataclass(frozen=True, slots=True)
class Place:
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> "Place":
        parts = urlsplit(url)
        return cls(parts.hostname or "127.0.0.1", parts.port or 80)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self.host, self.port)

    def head(self, path: str, *lines: str, method: str = "POST") -> bytes:
        """The bytes of a request before its body."""
        first = (f"{method} {path} HTTP/1.1", f"host: {self.host}:{self.port}", "content-type: application/json")
        return "\r\n".join((*first, *lines, "", "")).encode("latin-1")


async def exchange(place: Place, data: bytes | AsyncIterable[bytes], seconds: float = SECONDS) -> Answer:
    """Send on a connection of its own until there is an answer. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        reader, writer = await place.connect()
        sending = asyncio.create_task(_send(writer, data))
        try:
            return await read_answer(reader)
        finally:
            sending.cancel()
            await asyncio.wait({sending})
            writer.transport.abort()


async def converse(place: Place, data: bytes, seconds: float = SECONDS) -> bytes:
    """Send, and read all that comes back until the server closes. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        reader, writer = await place.connect()
        try:
            await _send(writer, data)
            return await _read_all(reader)
        finally:
            writer.transport.abort()


def first_answer(data: bytes, *, is_head: bool = False, is_closed: bool = True) -> Answer:
    """Of all that came back on a connection. is_head, is_closed: see AnswerReader."""
    reading = AnswerReader(is_head=is_head)
    reading.push(data)
    return reading.answer(is_closed=is_closed)


async def read_answer(reader: asyncio.StreamReader) -> Answer:
    reading, is_closed = AnswerReader(), False
    while not (reading.is_over or is_closed):
        try:
            data = await reader.read(READ_BYTES)
        except OSError:  # a reset is the end of no answer
            break
        reading.push(data)
        is_closed = not data
    return reading.answer(is_closed=is_closed)


async def pieces(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


class AnswerReader:
    """The first answer of a connection while it arrives; httptools calls the `on_` methods.

    It is whole by its framing alone. is_head: it answers HEAD, and so its head is all of it. is_over: nothing that
    comes can change it any more, as it is whole or no HTTP.
    """

    def __init__(self, *, is_head: bool = False) -> None:
        self.is_over = False
        self._is_head = is_head
        self._parser = httptools.HttpResponseParser(self)
        self._status = 0
        self._headers: dict[str, str] = {}
        self._parts: list[bytes] = []
        self._is_whole = False
        self._has_more = False

    def push(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._note_more()
            self.is_over = True

    def answer(self, *, is_closed: bool) -> Answer:
        """As far as it has come. is_closed: whether the connection has ended, which ends an answer without a length."""
        if not self._status:
            return NO_ANSWER
        ends_with_connection = not self._headers.keys() & {"content-length", "transfer-encoding"}
        is_whole = self._is_whole or (is_closed and ends_with_connection and not self.is_over)
        return Answer(self._status, self._headers, b"".join(self._parts), is_whole, self._has_more)

    def on_message_begin(self) -> None:
        self._note_more()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_whole:
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._is_whole or self._is_interim:
            return
        self._status = self._parser.get_status_code()
        if self._is_head:
            self._end()

    def on_chunk_header(self) -> None:
        self._note_more()

    def on_body(self, data: bytes) -> None:
        self._note_more()
        if not self._is_whole:
            self._parts.append(data)

    def on_message_complete(self) -> None:
        if not self._is_interim:
            self._end()

    @property
    def _is_interim(self) -> bool:
        return self._parser.get_status_code() == CONTINUE

    def _end(self) -> None:
        self.is_over = self._is_whole = True

    def _note_more(self) -> None:
        self._has_more |= self._is_whole


async def _send(writer: asyncio.StreamWriter, data: bytes | AsyncIterable[bytes]) -> None:
    with suppress(OSError):
        if isinstance(data, bytes):
            writer.write(data)
        else:
            async for piece in data:
                writer.write(piece)
                await writer.drain()
        await writer.drain()


async def _read_all(reader: asyncio.StreamReader) -> bytes:
    received = b""
    with suppress(OSError):
        while data := await reader.read(READ_BYTES):
            received += data
    return received
