"""A small HTTP/1.1 client: on few cores the load generator's own work takes from what it measures."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlsplit

import httptools
import msgspec

READ_BYTES = 65536


@dataclass(frozen=True, slots=True)
class Server:
    """Where to send requests, and the key to send with them."""

    host: str
    port: int
    is_tls: bool = False
    base_path: str = ""
    api_key: str | None = None

    @classmethod
    def from_url(cls, url: str, api_key: str | None = None) -> Self:
        """Read `http://host:port[/path]`; a trailing `/v1` is dropped. Raises ValueError."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"expected http://host:port, got {url!r}")
        is_tls = parts.scheme == "https"
        base_path = parts.path.rstrip("/").removesuffix("/v1")
        return cls(parts.hostname, parts.port or (443 if is_tls else 80), is_tls, base_path, api_key)

    def head(self, method: str, path: str, body_length: int, *, is_kept: bool) -> bytes:
        """The bytes of a request before its body."""
        lines = [f"{method} {self.base_path}{path} HTTP/1.1", f"Host: {self.host}:{self.port}"]
        if self.api_key is not None:
            lines.append(f"Authorization: Bearer {self.api_key}")
        lines += [
            "Content-Type: application/json",
            f"Content-Length: {body_length}",
            f"Connection: {'keep-alive' if is_kept else 'close'}",
        ]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


class Answer:
    """One answer while it arrives; httptools calls the `on_` methods."""

    def __init__(self) -> None:
        self.is_complete = False
        self.has_headers = False
        self.ends_with_connection = True
        self.parts: list[bytes] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() in (b"content-length", b"transfer-encoding"):
            self.ends_with_connection = False

    def on_headers_complete(self) -> None:
        self.has_headers = True

    def on_body(self, data: bytes) -> None:
        self.parts.append(data)

    def on_message_complete(self) -> None:
        self.is_complete = True

    def take(self) -> bytes:
        """The body bytes that came since the last call."""
        data = b"".join(self.parts)
        self.parts.clear()
        return data


class Connection:
    """One connection to a server, for one request at a time. Use it in a `with`."""

    def __init__(self, server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer
        self._answer = Answer()
        self._parser = httptools.HttpResponseParser(self._answer)

    @classmethod
    async def open(cls, server: Server) -> Self:
        """Connect. Raises OSError."""
        context = ssl.create_default_context() if server.is_tls else None
        reader, writer = await asyncio.open_connection(server.host, server.port, ssl=context)
        return cls(server, reader, writer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; what is unread is dropped."""
        self._writer.close()

    @property
    def can_be_used_again(self) -> bool:
        """Whether the last answer ended cleanly and the server left the connection open."""
        return self._answer.is_complete and not self._reader.at_eof() and self._parser.should_keep_alive()

    async def send(self, method: str, path: str, body: bytes, *, is_kept: bool) -> int:
        """Send a request and return the answer's status. Raises OSError."""
        self._answer = Answer()
        self._parser = httptools.HttpResponseParser(self._answer)
        self._writer.write(self._server.head(method, path, len(body), is_kept=is_kept) + body)
        while not self._answer.has_headers:
            await self._read()
        return self._parser.get_status_code()

    async def body(self) -> AsyncIterator[bytes]:
        """The answer's body as it arrives. Raises OSError when it is cut."""
        while True:
            if data := self._answer.take():
                yield data
            if self._answer.is_complete:
                return
            await self._read()

    async def _read(self) -> None:
        data = await self._reader.read(READ_BYTES)
        if data:
            self._parser.feed_data(data)
        elif self._answer.has_headers and self._answer.ends_with_connection:
            self._answer.is_complete = True
        else:
            raise ConnectionError("the server closed the connection before the answer was complete")


async def fetch_json(server: Server, method: str, path: str, body: object = None) -> tuple[int, Any]:
    """One request on a connection of its own: the status, and the body read as JSON (None where it is none)."""
    content = b"" if body is None else msgspec.json.encode(body)
    with await Connection.open(server) as connection:
        status = await connection.send(method, path, content, is_kept=False)
        received = b"".join([data async for data in connection.body()])
    try:
        return status, msgspec.json.decode(received)
    except msgspec.DecodeError:
        return status, None
