"""A server in a thread, as production runs it, around an application that tells what it got; and bytes to send."""

import asyncio
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import uvloop
from starlette.types import Receive, Scope, Send

from octavo.server.bounds import ConnectionBounds
from octavo.server.drain import Drain
from octavo.server.http_server import HttpServer
from octavo.server.listener import listen
from octavo.server.protocol import BoundedProtocol
from octavo.server.refusals import Refusals
from support.processes import SECONDS

GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
HEALTH = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"


def post(body: bytes, *headers: bytes, path: bytes = b"/") -> bytes:
    return post_head(b"content-length: %d" % len(body), *headers, path=path) + body


def post_head(*headers: bytes, path: bytes = b"/") -> bytes:
    return b"\r\n".join([b"POST %s HTTP/1.1" % path, b"host: x", *headers, b"", b""])


@dataclass
class Recorder:
    """An ASGI application that reads a body and says how long it was.

    /endless: its answer goes on until its client is gone. /large: many megabytes at once. /fails: after the first byte.
    /waits: answers when it is `released`. /unread: answers before its body has been read.
    """

    bodies: list[bytes] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    num_pieces: int = 0
    began: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)
    num_sent: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        path = scope["path"]
        if path == "/unread":
            await _answer(send, b"unread")
            return
        self.began.set()
        body = await self._read(receive)
        if body is None:
            self.left.set()
            return
        self.bodies.append(body)
        if path == "/endless":
            await self._write_until_gone(receive, send)
        elif path == "/waits":
            await asyncio.to_thread(self.released.wait, SECONDS)
            await _answer(send, b"released")
        else:
            await _answer(send, bytes(32 * 2**20) if path == "/large" else b"%d bytes" % len(body))

    async def _read(self, receive: Receive) -> bytes | None:
        body, message = bytearray(), await receive()
        while message["type"] == "http.request":
            self.num_pieces += 1
            body += message["body"]
            if not message["more_body"]:
                return bytes(body)
            message = await receive()
        return None

    async def _write_until_gone(self, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        gone = asyncio.create_task(receive())
        while not gone.done():
            await send({"type": "http.response.body", "body": bytes(1024), "more_body": True})
            self.num_sent += 1024
            await asyncio.sleep(0)
        self.left.set()


async def _answer(send: Send, body: bytes) -> None:
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@dataclass(frozen=True)
class Served:
    port: int
    app: Recorder
    drain: Drain
    http: HttpServer
    loop: asyncio.AbstractEventLoop

    def connect(self, **options: int) -> socket.socket:
        """options: receive_buffer, of the kernel, in bytes."""
        sock = socket.socket()
        if size := options.get("receive_buffer"):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
        sock.settimeout(SECONDS)
        sock.connect(("127.0.0.1", self.port))
        return sock

    def exchange(self, *pieces: bytes) -> bytes:
        """What comes back on a new connection until the server closes it."""
        with self.connect() as connection:
            for piece in pieces:
                connection.sendall(piece)
            return read_all(connection)

    @property
    def num_connections(self) -> int:
        return len(self.http.server_state.connections)

    @property
    def is_held_up(self) -> bool:
        """Whether an answer waits for its client to read."""
        connections = list(self.http.server_state.connections)
        return any(isinstance(each, BoundedProtocol) and each.flow.write_paused for each in connections)

    def stop(self, *, at_once: bool = False) -> None:
        with suppress(RuntimeError):  # it has ended, and its loop with it
            self.loop.call_soon_threadsafe(lambda: self.http.stop(at_once=at_once))


def read_all(connection: socket.socket) -> bytes:
    received = bytearray()
    while data := connection.recv(2**18):
        received += data
    return bytes(received)


def read_answer(connection: socket.socket) -> bytes:
    """One answer with a content-length."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += _more(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    [size] = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")]
    while len(body) < size:
        body += _more(connection)
    return head + b"\r\n\r\n" + body


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    assert data, "the server has closed the connection"
    return data


@contextmanager
def served(**bounds: Any) -> Iterator[Served]:
    """A server on a free port, with short times unless told otherwise."""
    listener = listen("127.0.0.1", 0)
    ready: list[Served] = []
    is_ready = threading.Event()

    async def serve() -> None:
        app = Recorder()
        refusals = Refusals(lambda status: app.refused.append(status))
        drain = Drain(app, refusals)
        http = HttpServer(
            drain, ConnectionBounds(**{"max_receive_time": SECONDS, "max_unread_time": SECONDS, **bounds}), refusals
        )
        ready.append(Served(listener.port, app, drain, http, asyncio.get_running_loop()))
        is_ready.set()
        await http.serve([listener.sock])

    def run() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run)
    thread.start()
    assert is_ready.wait(SECONDS)
    server = ready[0]
    try:
        yield server
    finally:
        server.app.released.set()
        server.stop()
        thread.join(SECONDS)
        assert not thread.is_alive()


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def statuses(answers: bytes) -> list[int]:
    """Of all answers in the bytes of a connection."""
    return [int(number) for number in re.findall(rb"HTTP/1\.1 (\d{3}) ", answers)]
