"""A server on this machine that counts who comes, and answers as it is told, byte by byte."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

CERTIFICATE = Path(__file__).parent / "certificate.pem"
"""With its key, as whoever reads the tests has it."""

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True)
class Canary:
    """num_hits: connections so far. heads: of the requests so far. num_sent: bytes of bodies given to the connection.
    answers: by path. port: on which it listens, on every address of this machine."""

    port: int = 0
    num_hits: int = 0
    num_sent: int = 0
    heads: list[str] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str = "/") -> str:
        return f"http://{self.place}{path}"

    def serve(
        self, path: str, data: bytes, *, status: str = "200 OK", length: int | None = None, **headers: str
    ) -> str:
        """Answer a path with a body, and the URL. length: what the server says, if that is not so."""
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        lines.append(f"content-length: {len(data) if length is None else length}")
        head = "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode()

        async def answer(writer: asyncio.StreamWriter) -> None:
            await self.send(writer, head + data)

        self.answers[path] = answer
        return self.url(path)

    def redirect(self, path: str, to: str, status: str = "302 Found") -> str:
        return self.serve(path, b"elsewhere", status=status, location=to)

    async def send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        writer.write(data)
        await writer.drain()
        self.num_sent += len(data)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.num_hits += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            await self.answers.get(head.split()[1], self._say_that_nothing_is_there)(writer)
        writer.close()

    async def _say_that_nothing_is_there(self, writer: asyncio.StreamWriter) -> None:
        await self.send(writer, b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")


def _listener() -> socket.socket:
    if socket.has_dualstack_ipv6():
        return socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("0.0.0.0", 0))


def own_certificate() -> ssl.SSLContext:
    """Of a server at localhost and 127.0.0.1 for which nobody vouches."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTIFICATE)
    return context


@asynccontextmanager
async def canary(certificate: ssl.SSLContext | None = None) -> AsyncIterator[Canary]:
    """One that listens as long as the block runs. certificate: for a server of https."""
    bird = Canary()
    connections: dict[asyncio.Task[None] | None, asyncio.StreamWriter] = {}

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections[asyncio.current_task()] = writer
        await bird.connected(reader, writer)

    server = await asyncio.start_server(connected, sock=_listener(), ssl=certificate)
    bird.port = server.sockets[0].getsockname()[1]
    try:
        yield bird
    finally:
        server.close()
        for writer in connections.values():
            writer.transport.abort()
        await asyncio.gather(*filter(None, connections))
