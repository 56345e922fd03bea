"""What parent and child say to each other, on the child's side."""

import asyncio
import logging
import os
from collections.abc import Coroutine
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass, field
from typing import Any

from octavo.core.images import Image
from octavo.core.output import TokenChunk
from octavo.core.request import GenerationRequest
from octavo.engine.base import HostedEngine
from octavo.engine.worker.frames import (
    Activity,
    Alive,
    Call,
    CallFailed,
    Cancel,
    Cancelled,
    Chunks,
    Done,
    DropImage,
    Encode,
    Encoded,
    EncodeImage,
    Failed,
    HoldImage,
    ImageEncoded,
    LoadAdapter,
    Posted,
    Ready,
    Result,
    Running,
    Shutdown,
    Submit,
    ToChild,
    ToParent,
    UnloadAdapter,
    pack,
    read_for_child,
)
from octavo.errors import EngineError, OctavoError, UnsupportedGrammar

log = logging.getLogger("octavo.worker")

ACTIVITY_INTERVAL = 0.1
ALIVE_INTERVAL = 1.0
FAULT_EXIT = 1


@dataclass(frozen=True, slots=True)
class _HeldImage:
    """tasks: that read it, and need not once it is taken back."""

    image: Image
    hold: AbstractContextManager[None]
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def take_back(self) -> None:
        for task in self.tasks:
            task.cancel()
        self.hold.__exit__(None, None, None)


class Conversation:
    """Requests from the parent into the engine, and all that comes out of it back, a frame per turn of the loop."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._engine: HostedEngine | None = None
        self._requests: dict[str, asyncio.Task[None]] = {}
        self._images: dict[str, _HeldImage] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._outbox: list[Posted] = []
        self._running: frozenset[str] = frozenset()  # as the parent was told
        self._start(self._listen())
        self._start(self._say_alive())

    def send(self, message: ToParent) -> None:
        self._writer.write(pack(message))

    async def serve(self, engine: HostedEngine, lost_adapters: tuple[str, ...]) -> None:
        """From now on there is an engine. lost_adapters: keys of those that it should have and has not."""
        self._engine = engine
        self.send(Ready(engine.info, engine.tokenizer.vocabulary, lost_adapters))
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
                task.add_done_callback(lambda ended: self._end_request(engine, request.id, ended))
            case Cancel(request_id):
                if request_id in self._requests:
                    self._requests[request_id].cancel()
            case HoldImage(image):
                held = self._images[image.digest] = _HeldImage(image, engine.hold_images((image,)))
                held.hold.__enter__()
            case DropImage(digest):
                self._images.pop(digest).take_back()
            case EncodeImage(_, digest):
                self._images[digest].tasks.append(self._start(self._answer(engine, message)))
            case Encode() | LoadAdapter() | UnloadAdapter():
                self._start(self._answer(engine, message))

    def _end_request(self, engine: HostedEngine, request_id: str, task: asyncio.Task[None]) -> None:
        del self._requests[request_id]
        if task.cancelled() and not self._writer.is_closing():
            self._tell_running(engine)  # it may have got a slot since, and be in a step
            self.send(Cancelled(request_id))

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(coroutine)
        self._background.add(task)
        task.add_done_callback(self._end_background)
        return task

    def _end_background(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.critical("the worker cannot go on", exc_info=task.exception())
            os._exit(FAULT_EXIT)  # the parent answers whoever waits, and starts another

    async def _generate(self, engine: HostedEngine, request: GenerationRequest) -> None:
        try:
            async with aclosing(engine.generate(request)) as chunks:
                async for chunk in chunks:
                    self._post(engine, request.id, chunk)
        except OctavoError as error:
            self._fail(request, error.message, is_refusal=isinstance(error, UnsupportedGrammar))
        except Exception:  # a fault of ours, and yet nobody may wait for ever
            log.exception("request %s failed", request.id)
            self._fail(request, "The engine failed on this request; its log says why.")

    def _fail(self, request: GenerationRequest, message: str, *, is_refusal: bool = False) -> None:
        self._flush()  # what came before the fault is sent before it
        self.send(Failed(request.id, message, is_refusal))

    def _post(self, engine: HostedEngine, request_id: str, chunk: TokenChunk) -> None:
        if not self._outbox:
            asyncio.get_running_loop().call_soon(self._flush_all, engine)
        self._outbox += [Posted.of(request_id, part) for part in chunk.parts()]

    def _flush(self) -> None:
        if self._outbox:
            self.send(Chunks(self._outbox))
            self._outbox = []

    def _flush_all(self, engine: HostedEngine) -> None:
        self._flush()
        self._tell_running(engine)

    def _tell_running(self, engine: HostedEngine) -> None:
        if (running := engine.running) != self._running:
            self.send(Running(running))
            self._running = running

    async def _answer(self, engine: HostedEngine, message: Call) -> None:
        try:
            self.send(await self._result(engine, message))
        except OctavoError as error:
            self.send(CallFailed(message.call, error.code, error.message, error.param))
        except asyncio.CancelledError:
            self.send(CallFailed(message.call, EngineError.code, "The call was given up."))
            raise
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
            now = Activity(health.num_running, health.num_waiting, health.batch_size, health.cache)
            if now != last:
                self.send(now)
                last = now
            self._tell_running(engine)
            await asyncio.sleep(ACTIVITY_INTERVAL)

    async def _say_alive(self) -> None:
        while True:
            self.send(Alive(self._engine.health().step if self._engine is not None else 0))
            await asyncio.sleep(ALIVE_INTERVAL)
