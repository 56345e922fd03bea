"""The parent's side: an `Engine` whose work is done by a child process that is replaced when it dies."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from octavo.core.adapters import Adapter
from octavo.core.images import Image, ImageTokens
from octavo.core.output import TokenChunk
from octavo.core.request import GenerationRequest
from octavo.core.vocabulary import Vocabulary
from octavo.engine.base import EngineHealth, EngineInfo, EngineState, Fragment
from octavo.engine.specs import EngineSpec
from octavo.engine.worker import frames
from octavo.engine.worker.backoff import Backoff
from octavo.engine.worker.calls import Calls
from octavo.engine.worker.held_images import HeldImages
from octavo.engine.worker.mailbox import Mailbox
from octavo.engine.worker.process import ChildProcess
from octavo.errors import (
    AdapterRefused,
    EngineDied,
    EngineError,
    EngineUnavailable,
    ImageRefused,
    ModelLoadError,
    OctavoError,
    UnsupportedGrammar,
    VisionUnsupported,
)

log = logging.getLogger("octavo.worker")

CLOSE_GRACE = 5.0
DEATH_GRACE = 1.0
CALL_ERRORS = {error.code: error for error in (AdapterRefused, ImageRefused, VisionUnsupported)}
"""What a call may fail with beside EngineError, by code."""


class WorkerEngine:
    """Implements `Engine`. `start` it on the event loop that will use it.

    fallback: the spec to go on with when the child dies by itself while it loads `spec`.
    """

    def __init__(self, spec: EngineSpec, fallback: EngineSpec | None = None) -> None:
        self._spec = spec
        self._fallback = fallback
        self._child: ChildProcess | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._health = EngineHealth(EngineState.LOADING, progress=0.0)
        self._settled = asyncio.Event()  # ready for the first time, or failed for good
        self._info: EngineInfo | None = None
        self._vocabulary: Vocabulary | None = None
        self._mailboxes: dict[str, Mailbox] = {}
        self._calls = Calls()
        self._adapters: dict[str, Adapter] = {}
        self._restored: tuple[Adapter, ...] = ()  # by the child while it loads
        self._images = HeldImages(self._send_if_ready)
        self._backoff = Backoff()

    async def start(self) -> None:
        """Start the child; returns at once."""
        self._supervisor = asyncio.create_task(self._supervise())
        self._supervisor.add_done_callback(self._end_supervision)

    async def wait_ready(self) -> None:
        """Wait for the first time the engine is ready.

        Raises ModelLoadError when the model cannot be served, EngineUnavailable when the engine is closed meanwhile.
        """
        await self._settled.wait()
        if self._health.state is EngineState.FAILED:
            raise ModelLoadError(self._health.message)
        if self._health.state is EngineState.CLOSED:
            raise self._unavailable()

    @property
    def info(self) -> EngineInfo:
        if self._info is None:
            raise self._unavailable()
        return self._info

    @property
    def tokenizer(self) -> "WorkerEngine":
        return self

    @property
    def vocabulary(self) -> Vocabulary:
        if self._vocabulary is None:
            raise self._unavailable()
        return self._vocabulary

    @property
    def pid(self) -> int | None:
        """Process id of the child, None between two of them."""
        return self._child.pid if self._child else None

    def health(self) -> EngineHealth:
        return self._health

    async def encode(self, fragments: Sequence[Fragment]) -> tuple[int, ...]:
        tokens: tuple[int, ...] = await self._call(lambda call: frames.Encode(call, tuple(fragments)))
        return tokens

    async def encode_image(self, image: Image) -> ImageTokens:
        with self._images.held((image,)):
            tokens: ImageTokens = await self._call(lambda call: frames.EncodeImage(call, image.digest))
        return tokens

    def hold_images(self, images: Sequence[Image]) -> AbstractContextManager[None]:
        return self._images.held(images)

    async def load_adapter(self, adapter: Adapter) -> None:
        await self._call(lambda call: frames.LoadAdapter(call, adapter))
        self._adapters[adapter.key] = adapter

    async def unload_adapter(self, key: str) -> None:
        self._adapters.pop(key, None)
        if self._health.state is EngineState.READY:  # another child will not hear of it
            await self._call(lambda call: frames.UnloadAdapter(call, key))

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[TokenChunk, None]:
        child = self._ready_child()
        child.send(frames.Submit(request))
        mailbox = self._mailboxes[request.id] = Mailbox()
        is_over = False
        try:
            while not is_over:
                if mailbox.is_empty:
                    await mailbox.arrival()
                chunk = mailbox.take()
                is_over = chunk.finish_reason is not None
                yield chunk
        except OctavoError:
            is_over = True
            raise
        finally:
            del self._mailboxes[request.id]
            if not is_over:
                child.send(frames.Cancel(request.id))

    async def close(self) -> None:
        self._set_state(EngineState.CLOSED, "The engine is stopped.")
        self._settled.set()
        self._end_all(EngineUnavailable, "The server is stopping.")
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.wait([self._supervisor])
        if self._child is not None:
            self._child.send(frames.Shutdown())
            await self._child.stop(grace=CLOSE_GRACE)
            self._child = None

    async def _call(self, frame: Callable[[int], frames.Call]) -> Any:
        """What the child answers to the frame with this call's number."""
        child, number = self._ready_child(), self._calls.next_number()
        child.send(frame(number))
        return await self._calls.answer(number)

    def _send_if_ready(self, message: frames.ToChild) -> None:
        if self._child is not None and self._health.state is EngineState.READY:
            self._child.send(message)

    def _ready_child(self) -> ChildProcess:
        if self._child is None or self._health.state is not EngineState.READY:
            raise self._unavailable()
        return self._child

    def _unavailable(self) -> EngineUnavailable:
        return EngineUnavailable(f"The engine is {self._health.state}. {self._health.message}".rstrip())

    async def _supervise(self) -> None:
        while True:
            try:
                self._restored = tuple(self._adapters.values())
                self._child = await ChildProcess.spawn(self._spec, self._restored)
            except OSError as error:
                await self._recover(f"Its process could not be started ({error.strerror}).", may_fall_back=False)
                continue
            load_failure = await self._converse(self._child)
            ending = await self._child.stop(grace=DEATH_GRACE)
            self._child = None
            if load_failure is not None and not self._settled.is_set():
                self._set_state(EngineState.FAILED, load_failure)
                self._settled.set()
                return
            # It died by itself and has never been ready: perhaps this machine cannot do what it was told.
            died_loading = load_failure is None and not self._settled.is_set()
            await self._recover(load_failure or f"Its process ended ({ending}).", may_fall_back=died_loading)

    def _end_supervision(self, task: asyncio.Task[None]) -> None:
        """A fault in the supervisor itself: without it nobody would be answered any more."""
        if not task.cancelled() and (error := task.exception()) is not None:
            log.critical("the supervisor cannot go on", exc_info=error)
            self._set_state(EngineState.FAILED, "The engine's supervisor failed; the log says why.")
            self._settled.set()
            self._end_all(EngineUnavailable, "The engine has failed.")

    async def _converse(self, child: ChildProcess) -> str | None:
        """Until the child is gone. Returns why the model cannot be loaded, if it said so."""
        load_failure = None
        while (message := await child.receive()) is not None:
            if isinstance(message, frames.LoadFailed):
                load_failure = message.message
            else:
                self._handle(message)
        return load_failure

    async def _recover(self, reason: str, *, may_fall_back: bool) -> None:
        """After a child's end: answer its requests, and wait before the next one."""
        log.error("the engine is down: %s", reason)
        self._end_all(EngineDied, "The engine stopped while it worked on this request; it is being restarted.")
        self._set_state(EngineState.RESTARTING, reason)
        self._health = replace(self._health, num_restarts=self._health.num_restarts + 1)
        if may_fall_back and self._fallback is not None:
            log.warning("it died while loading: going on with the fall-back %s", self._fallback)
            self._spec, self._fallback = self._fallback, None
        else:
            await asyncio.sleep(self._backoff.next_delay())

    def _handle(self, message: frames.ToParent) -> None:
        match message:
            case frames.Chunks(chunks):
                for request_id, chunk in chunks:
                    if (mailbox := self._mailboxes.get(request_id)) is not None:
                        mailbox.put(chunk)
                    if chunk.finish_reason is not None:
                        self._backoff.reset()
            case frames.Failed(request_id, text, is_refusal):
                if request_id in self._mailboxes:
                    self._mailboxes[request_id].fail(UnsupportedGrammar(text) if is_refusal else EngineError(text))
            case frames.Encoded(call, tokens):
                self._calls.settle(call, tokens)
            case frames.ImageEncoded(call, image_tokens):
                self._calls.settle(call, image_tokens)
            case frames.Done(call):
                self._calls.settle(call, None)
            case frames.CallFailed(call, code, text, param):
                self._calls.settle(call, CALL_ERRORS.get(code, EngineError)(text, param=param))
            case frames.Activity(running, waiting, batch_size):
                self._health = replace(self._health, num_running=running, num_waiting=waiting, batch_size=batch_size)
            case frames.Progress(fraction):
                self._health = replace(self._health, progress=fraction)
            case frames.Ready(info, vocabulary, lost_adapters):
                self._lose_adapters(lost_adapters)
                self._become_ready(info, vocabulary)
            case frames.LoadFailed():
                pass  # the child's last words, see _converse

    def _become_ready(self, info: EngineInfo, vocabulary: Vocabulary) -> None:
        self._info, self._vocabulary = info, vocabulary
        self._set_state(EngineState.READY, "")
        self._images.send_all()
        for adapter in self._restored:
            if adapter.key not in self._adapters:  # it was unloaded meanwhile
                self._send_if_ready(frames.UnloadAdapter(self._calls.next_number(), adapter.key))
        self._settled.set()
        log.info("the engine is ready in process %d", self.pid or 0)

    def _lose_adapters(self, keys: Iterable[str]) -> None:
        lost = {key for key in keys if self._adapters.pop(key, None) is not None}  # others were unloaded meanwhile
        self._health = replace(self._health, lost_adapters=self._health.lost_adapters | lost)

    def _end_all(self, kind: type[EngineUnavailable], message: str) -> None:
        for mailbox in self._mailboxes.values():
            mailbox.fail(kind(message))
        self._calls.fail_all(kind, message)

    def _set_state(self, state: EngineState, message: str) -> None:
        self._health = EngineHealth(
            state,
            progress=float(state is EngineState.READY),
            message=message,
            num_restarts=self._health.num_restarts,
            lost_adapters=self._health.lost_adapters,
        )
