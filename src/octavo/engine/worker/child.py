"""The child's side: an engine in the main thread, its I/O in a helper thread.

llama.cpp's OpenMP threads spin well only when model loading and decoding happen in the process' main thread, so the
event loop that speaks with the parent lives in the other one.
"""

import asyncio
import ctypes
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

from octavo.core.adapters import Adapter
from octavo.core.images import Image
from octavo.core.output import TokenChunk
from octavo.core.request import GenerationRequest
from octavo.engine.base import HostedEngine
from octavo.engine.specs import EngineSpec
from octavo.engine.worker.frames import (
    Activity,
    Call,
    CallFailed,
    Cancel,
    Chunks,
    Done,
    DropImage,
    Encode,
    Encoded,
    EncodeImage,
    Failed,
    HoldImage,
    ImageEncoded,
    Load,
    LoadAdapter,
    LoadFailed,
    Progress,
    Ready,
    Result,
    Shutdown,
    Submit,
    ToChild,
    ToParent,
    UnloadAdapter,
    pack,
    read_for_child,
)
from octavo.errors import EngineError, OctavoError, UnsupportedGrammar

LoadEngine = Callable[[EngineSpec, Callable[[float], None]], HostedEngine]
"""Builds the engine that a spec describes, reporting progress from 0 to 1. Raises ModelLoadError."""

T = TypeVar("T")

log = logging.getLogger("octavo.worker")

ACTIVITY_INTERVAL = 0.1
SWITCH_INTERVAL = 0.0005
FAULT_EXIT = 1
LOAD_FAILED_EXIT = 3
PR_SET_PDEATHSIG = 1


def host(sock: socket.socket, load_engine: LoadEngine) -> int:
    """Serve the parent at the other end of `sock` with the engine it asks for; returns the exit code."""
    _die_with_parent()
    for number in (signal.SIGINT, signal.SIGTERM):  # to the whole process group, as terminals and systemd send them:
        signal.signal(number, signal.SIG_IGN)  # the parent drains first, and then ends this process
    sys.setswitchinterval(SWITCH_INTERVAL)  # the step loop must not wait 5 ms for the I/O thread after each step
    link = Link(sock)
    load = link.start()
    try:
        engine = load_engine(load.spec, lambda fraction: link.send(Progress(fraction)))
    except OctavoError as error:
        return link.give_up(error.message)
    except Exception:  # a fault of ours or of the file; trying again would find it again
        log.exception("the model cannot be loaded")
        return link.give_up("The engine failed while it loaded the model; its log says why.")
    for adapter in load.adapters:
        _restore(engine, adapter)
    link.serve(engine)
    engine.run()
    link.finish()
    return 0


def _restore(engine: HostedEngine, adapter: Adapter) -> None:
    """Requests for an adapter that is not there any more fail one by one; the others need not."""
    try:
        engine.restore_adapter(adapter)
    except OctavoError as error:
        log.error("an adapter is lost: %s", error.message)


class Link:
    """The connection to the parent, on an event loop in a thread of its own."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="worker-io", daemon=True)

    def start(self) -> Load:
        """Connect, wait for the parent's wish, and listen from then on: a loading child, too, hears that it is over."""
        self._thread.start()
        return self._call(self._connect())

    def send(self, message: ToParent) -> None:
        """From any thread."""
        self._loop.call_soon_threadsafe(self._conversation.send, message)

    def serve(self, engine: HostedEngine) -> None:
        self._call(self._conversation.serve(engine))

    def give_up(self, reason: str) -> int:
        """Say why there will be no engine; returns the exit code."""
        self.send(LoadFailed(reason))
        self.finish()
        return LOAD_FAILED_EXIT

    def finish(self) -> None:
        """Let the parent have what was sent, and hang up."""
        self._call(self._conversation.finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _connect(self) -> Load:
        reader, writer = await asyncio.open_unix_connection(sock=self._sock)
        message = await read_for_child(reader)
        if not isinstance(message, Load):
            os._exit(0)  # the parent is gone before it said anything
        self._conversation = Conversation(reader, writer)
        return message

    def _call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


@dataclass(frozen=True, slots=True)
class _HeldImage:
    image: Image
    hold: AbstractContextManager[None]


class Conversation:
    """Requests from the parent into the engine, and all that comes out of it back, a frame per turn of the loop."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._engine: HostedEngine | None = None
        self._requests: dict[str, asyncio.Task[None]] = {}
        self._images: dict[str, _HeldImage] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._outbox: list[tuple[str, TokenChunk]] = []
        self._start(self._listen())

    def send(self, message: ToParent) -> None:
        self._writer.write(pack(message))

    async def serve(self, engine: HostedEngine) -> None:
        """From now on there is an engine."""
        self._engine = engine
        self.send(Ready(engine.info, engine.tokenizer.vocabulary))
        self._start(self._report_activity(engine))

    async def finish(self) -> None:
        tasks = [*self._background, *self._requests.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._writer.drain()
        self._writer.close()

    async def _listen(self) -> None:
        while (message := await read_for_child(self._reader)) is not None:
            if isinstance(message, Shutdown) or self._engine is None:
                break
            self._handle(message, self._engine)
        if message is None or self._engine is None:
            os._exit(0)  # the parent is gone, or does not want to wait for the model: nobody needs a clean end
        await self._engine.close()

    def _handle(self, message: ToChild, engine: HostedEngine) -> None:
        match message:
            case Submit(request):
                task = self._requests[request.id] = asyncio.create_task(self._generate(engine, request))
                # Not at the end of the task: one that is cancelled before it begins never gets there.
                task.add_done_callback(lambda _: self._requests.pop(request.id))
            case Cancel(request_id):
                if request_id in self._requests:
                    self._requests[request_id].cancel()
            case HoldImage(image):
                held = self._images[image.digest] = _HeldImage(image, engine.hold_images((image,)))
                held.hold.__enter__()
            case DropImage(digest):
                self._images.pop(digest).hold.__exit__(None, None, None)
            case Encode() | EncodeImage() | LoadAdapter() | UnloadAdapter():
                self._start(self._answer(engine, message))

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine)
        self._background.add(task)
        task.add_done_callback(self._end_background)

    def _end_background(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.critical("the worker cannot go on", exc_info=task.exception())
            os._exit(FAULT_EXIT)  # the parent answers whoever waits, and starts another

    async def _generate(self, engine: HostedEngine, request: GenerationRequest) -> None:
        try:
            async with aclosing(engine.generate(request)) as chunks:
                async for chunk in chunks:
                    self._post(request.id, chunk)
        except OctavoError as error:
            self._fail(request, error.message, is_refusal=isinstance(error, UnsupportedGrammar))
        except Exception:  # a fault of ours, and yet nobody may wait for ever
            log.exception("request %s failed", request.id)
            self._fail(request, "The engine failed on this request; its log says why.")

    def _fail(self, request: GenerationRequest, message: str, *, is_refusal: bool = False) -> None:
        self._flush()  # what came before the fault is sent before it
        self.send(Failed(request.id, message, is_refusal))

    def _post(self, request_id: str, chunk: TokenChunk) -> None:
        if not self._outbox:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outbox.append((request_id, chunk))

    def _flush(self) -> None:
        if self._outbox:
            self.send(Chunks(self._outbox))
            self._outbox = []

    async def _answer(self, engine: HostedEngine, message: Call) -> None:
        try:
            self.send(await self._result(engine, message))
        except OctavoError as error:
            self.send(CallFailed(message.call, error.code, error.message))
        except Exception:
            log.exception("a call failed")
            self.send(CallFailed(message.call, EngineError.code, "The engine failed on this call; its log says why."))

    async def _result(self, engine: HostedEngine, message: Call) -> Result:
        match message:
            case Encode(call, fragments):
                return Encoded(call, await engine.tokenizer.encode(fragments))
            case EncodeImage(call, digest):
                return ImageEncoded(call, await engine.tokenizer.encode_image(self._images[digest].image))
            case LoadAdapter(call, adapter):
                await engine.load_adapter(adapter)
                return Done(call)
            case UnloadAdapter(call, key):
                await engine.unload_adapter(key)
                return Done(call)

    async def _report_activity(self, engine: HostedEngine) -> None:
        last = None
        while True:
            health = engine.health()
            now = Activity(health.num_running, health.num_waiting, health.batch_size)
            if now != last:
                self.send(now)
                last = now
            await asyncio.sleep(ACTIVITY_INTERVAL)


def _die_with_parent() -> None:
    """Linux ends this process with its parent, even while it is stopped; elsewhere the closed socket says it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
