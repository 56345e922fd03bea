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


@dataclass(frozen=True, slots=True)
class Answer:
    """status: 0 where the connection was closed without an answer. headers: by their lower-case names."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @classmethod
    def of(cls, response: httpx.Response) -> "Answer":
        return cls(response.status_code, dict(response.headers.items()), response.content)


NO_ANSWER = Answer(0)


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


def first_answer(data: bytes) -> Answer:
    """Of all that came back on a connection."""
    reading = _Reading()
    with suppress(httptools.HttpParserError):
        reading.parser.feed_data(data)
    return reading.answer()


async def read_answer(reader: asyncio.StreamReader) -> Answer:
    reading = _Reading()
    while not reading.is_whole:
        try:
            data = await reader.read(READ_BYTES)
        except OSError:
            break
        if not data:
            break
        try:
            reading.parser.feed_data(data)
        except httptools.HttpParserError:
            break
    return reading.answer()


async def pieces(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


class _Reading:
    """One answer while it arrives; httptools calls the `on_` methods."""

    def __init__(self) -> None:
        self.is_whole = False
        self.parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._parts: list[bytes] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, data: bytes) -> None:
        self._parts.append(data)

    def on_message_complete(self) -> None:
        self.is_whole = True

    def answer(self) -> Answer:
        status = self.parser.get_status_code()
        return Answer(status, self._headers, b"".join(self._parts)) if status else NO_ANSWER


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
