"""The child's side: an engine in the main thread, its I/O in a helper thread.

llama.cpp's OpenMP threads spin well only when model loading and decoding happen in the process' main thread, so the
event loop that speaks with the parent lives in the other one.
"""

import asyncio
import ctypes
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable

from octavo.core.output import TokenChunk
from octavo.core.request import GenerationRequest
from octavo.engine.base import HostedEngine
from octavo.engine.specs import EngineSpec
from octavo.engine.worker.frames import (
    Activity,
    Cancel,
    Chunks,
    Encode,
    Encoded,
    Failed,
    Load,
    LoadFailed,
    Progress,
    Ready,
    Shutdown,
    Submit,
    ToParent,
    pack,
    read_for_child,
)
from octavo.errors import ModelLoadError, OctavoError

LoadEngine = Callable[[EngineSpec, Callable[[float], None]], HostedEngine]
"""Builds the engine that a spec describes, reporting progress from 0 to 1. Raises ModelLoadError."""

ACTIVITY_INTERVAL = 0.1
SWITCH_INTERVAL = 0.0005
LOAD_FAILED_EXIT = 3
PR_SET_PDEATHSIG = 1


def host(sock: socket.socket, load_engine: LoadEngine) -> int:
    """Serve the parent at the other end of `sock` with the engine it asks for; returns the exit code."""
    _die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    sys.setswitchinterval(SWITCH_INTERVAL)  # the step loop must not wait 5 ms for the I/O thread after each step
    link = Link(sock)
    spec = link.start()
    try:
        engine = load_engine(spec, lambda fraction: link.send(Progress(fraction)))
    except ModelLoadError as error:
        link.send(LoadFailed(error.message))
        link.finish()
        return LOAD_FAILED_EXIT
    link.serve(engine)
    engine.run()
    link.finish()
    return 0


class Link:
    """The connection to the parent, on an event loop in a thread of its own."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="worker-io", daemon=True)

    def start(self) -> EngineSpec:
        """Connect and wait for the parent's spec."""
        self._thread.start()
        return asyncio.run_coroutine_threadsafe(self._connect(), self._loop).result()

    def send(self, message: ToParent) -> None:
        """From any thread."""
        self._loop.call_soon_threadsafe(self._writer.write, pack(message))

    def serve(self, engine: HostedEngine) -> None:
        asyncio.run_coroutine_threadsafe(Conversation(engine, self._reader, self._writer).run(), self._loop)

    def finish(self) -> None:
        """Let the parent have what was sent, and hang up."""
        asyncio.run_coroutine_threadsafe(self._hang_up(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _connect(self) -> EngineSpec:
        self._reader, self._writer = await asyncio.open_unix_connection(sock=self._sock)
        message = await read_for_child(self._reader)
        if not isinstance(message, Load):
            os._exit(1)  # the parent is gone before it said anything
        return message.spec

    async def _hang_up(self) -> None:
        await self._writer.drain()
        self._writer.close()


class Conversation:
    """Requests from the parent into the engine, and all that comes out of it back, a frame per turn of the loop."""

    def __init__(self, engine: HostedEngine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._engine = engine
        self._reader = reader
        self._writer = writer
        self._requests: dict[str, asyncio.Task[None]] = {}
        self._calls: set[asyncio.Task[None]] = set()
        self._outbox: list[tuple[str, TokenChunk]] = []

    async def run(self) -> None:
        self._send(Ready(self._engine.info, self._engine.tokenizer.vocabulary))
        activity = asyncio.create_task(self._report_activity())
        while (message := await read_for_child(self._reader)) is not None:
            match message:
                case Submit(request):
                    self._requests[request.id] = asyncio.create_task(self._generate(request))
                case Cancel(request_id):
                    if request_id in self._requests:
                        self._requests[request_id].cancel()
                case Encode():
                    task = asyncio.create_task(self._encode(message))
                    self._calls.add(task)
                    task.add_done_callback(self._calls.discard)
                case Shutdown():
                    activity.cancel()
                    await self._engine.close()
                    return
        os._exit(0)  # the parent is gone; nobody waits for a clean end

    async def _generate(self, request: GenerationRequest) -> None:
        try:
            async for chunk in self._engine.generate(request):
                self._post(request.id, chunk)
        except OctavoError as error:
            self._flush()
            self._send(Failed(request.id, error.message))
        finally:
            del self._requests[request.id]

    def _post(self, request_id: str, chunk: TokenChunk) -> None:
        if not self._outbox:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outbox.append((request_id, chunk))

    def _flush(self) -> None:
        if self._outbox:
            self._send(Chunks(self._outbox))
            self._outbox = []

    async def _encode(self, message: Encode) -> None:
        self._send(Encoded(message.call, await self._engine.tokenizer.encode(message.fragments)))

    async def _report_activity(self) -> None:
        last = None
        while True:
            health = self._engine.health()
            now = Activity(health.num_running, health.num_waiting, health.batch_size)
            if now != last:
                self._send(now)
                last = now
            await asyncio.sleep(ACTIVITY_INTERVAL)

    def _send(self, message: ToParent) -> None:
        self._writer.write(pack(message))


def _die_with_parent() -> None:
    """Linux ends this process with its parent, even while it is stopped; elsewhere the closed socket says it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
