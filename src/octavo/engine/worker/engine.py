"""The parent's side: an `Engine` whose work is done by a child process that is replaced when it dies."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from math import inf
from time import monotonic
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
from octavo.engine.worker.ending import HUNG_STEP, LOAD_FAILED, NOT_STARTED, Ending
from octavo.engine.worker.held_images import HeldImages
from octavo.engine.worker.mailbox import Mailbox
from octavo.engine.worker.process import ChildProcess
from octavo.engine.worker.quarantine import Quarantine, Work
from octavo.engine.worker.watchdog import Watchdog
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
MAX_SILENCE = 15.0
"""Of a child that says every second that it lives. It waits for one function of C at the most that keeps Python's lock,
such as the loading of a library from a slow disk; what is longer than this would be noticed as an outage."""
MAX_STEP = 120.0
WATCH_INTERVAL = 0.5
CALL_ERRORS = {error.code: error for error in (AdapterRefused, ImageRefused, VisionUnsupported)}
"""What a call may fail with beside EngineError, by code."""


class WorkerEngine:
    """Implements `Engine`. `start` it on the event loop that will use it.

    fallback: the spec to go on with when the child dies by itself while it loads `spec`.
    max_silence, max_step: seconds after which a child that says nothing, or does not end a step, is replaced.
    """

    def __init__(
        self,
        spec: EngineSpec,
        fallback: EngineSpec | None = None,
        *,
        max_silence: float = MAX_SILENCE,
        max_step: float = MAX_STEP,
    ) -> None:
        self._spec = spec
        self._fallback = fallback
        self._new_watchdog = partial(Watchdog, max_silence=max_silence, max_step=max_step)
        self._watchdog = self._new_watchdog()
        self._quarantine = Quarantine()
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
        self._ready_at = inf

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
        return replace(self._health, pid=self.pid)

    async def encode(self, fragments: Sequence[Fragment]) -> tuple[int, ...]:
        text = tuple(fragments)
        tokens: tuple[int, ...] = await self._work(text, lambda call: frames.Encode(call, text))
        return tokens

    async def encode_image(self, image: Image) -> ImageTokens:
        with self._images.held((image,)):
            tokens: ImageTokens = await self._work(image, lambda call: frames.EncodeImage(call, image.digest))
        return tokens

    def hold_images(self, images: Sequence[Image]) -> AbstractContextManager[None]:
        return self._images.held(images)

    async def load_adapter(self, adapter: Adapter) -> None:
        await self._call(frames.LoadAdapter(self._calls.next_number(), adapter))
        self._adapters[adapter.key] = adapter

    async def unload_adapter(self, key: str) -> None:
        self._adapters.pop(key, None)
        if self._health.state is EngineState.READY:  # another child will not hear of it
            await self._call(frames.UnloadAdapter(self._calls.next_number(), key))

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[TokenChunk, None]:
        async with self._quarantine.giving(request.id, request):
            child = self._ready_child()
            child.send(frames.Submit(request))
        mailbox = self._mailboxes[request.id] = Mailbox()
        is_over = False
        try:
            while not is_over:
                if mailbox.is_empty:
                    await mailbox.arrival()
                else:
                    await asyncio.sleep(0)  # who is behind lets others have their turn
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

    async def _work(self, work: Work, frame: Callable[[int], frames.Call]) -> Any:
        """As `_call`, with what a child might die of."""
        number = self._calls.next_number()
        async with self._quarantine.giving(number, work):
            self._ready_child().send(frame(number))
        return await self._calls.answer(number)

    async def _call(self, frame: frames.Call) -> Any:
        """What the child answers to the frame."""
        self._ready_child().send(frame)
        return await self._calls.answer(frame.call)

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
            ending = await self._run_child()
            if ending.reason == LOAD_FAILED and not self._settled.is_set():
                self._set_state(EngineState.FAILED, ending.message)
                self._settled.set()
                return
            await self._recover(ending)

    async def _run_child(self) -> Ending:
        """From its start to its end."""
        self._restored, self._ready_at = tuple(self._adapters.values()), inf
        try:
            child = self._child = await ChildProcess.spawn(self._spec, self._restored)
        except OSError as error:
            return Ending(NOT_STARTED, f"Its process could not be started ({error.strerror}).")
        known = await self._converse(child)
        self._lose_work(known)
        ended = await child.stop(grace=DEATH_GRACE)
        self._child = None
        return known or ended

    def _end_supervision(self, task: asyncio.Task[None]) -> None:
        """A fault in the supervisor itself: without it nobody would be answered any more."""
        if not task.cancelled() and (error := task.exception()) is not None:
            log.critical("the supervisor cannot go on", exc_info=error)
            self._set_state(EngineState.FAILED, "The engine's supervisor failed; the log says why.")
            self._settled.set()
            self._end_all(EngineUnavailable, "The engine has failed.")

    async def _converse(self, child: ChildProcess) -> Ending | None:
        """Until the child is gone, or is given up. Returns why, where more is known than that it ended."""
        load_failure = None
        self._watchdog = self._new_watchdog()
        watch = asyncio.create_task(self._watch(child))
        try:
            while (message := await child.receive()) is not None:
                if isinstance(message, frames.LoadFailed):
                    load_failure = Ending(LOAD_FAILED, message.message)
                else:
                    self._handle(message)
        finally:
            watch.cancel()
        return self._watchdog.verdict or load_failure

    async def _watch(self, child: ChildProcess) -> None:
        """A turn of this loop counts as its interval, however long ago the last one was: see Watchdog."""
        while self._watchdog.verdict is None:
            await asyncio.sleep(WATCH_INTERVAL)
            self._watchdog.wait(WATCH_INTERVAL)
        child.kill()

    def _lose_work(self, ending: Ending | None) -> None:
        """Answer those whose child is gone at once, also where the system takes its time to end its process."""
        if self._health.state is EngineState.READY:
            self._set_state(EngineState.RESTARTING, "Its process is gone.")
        self._quarantine.blame(
            hung_step=ending is not None and ending.reason == HUNG_STEP,
            num_slots=self._info.num_slots if self._info is not None else 0,
        )
        self._end_all(EngineDied, "The engine stopped while it worked on this request; it is being restarted.")

    async def _recover(self, ending: Ending) -> None:
        """After a child's end: say so, and wait before the next one."""
        log.error("the engine is down: %s", ending.message)
        self._set_state(EngineState.RESTARTING, ending.message)
        self._count_death(ending)
        if ending.is_crash and not self._settled.is_set() and self._fallback is not None:
            # It has never been ready: perhaps this machine cannot do what it was told.
            log.warning("it died while loading: going on with the fall-back %s", self._fallback)
            self._spec, self._fallback = self._fallback, None
        else:
            await asyncio.sleep(self._backoff.next_delay(lived=monotonic() - self._ready_at))

    def _count_death(self, ending: Ending) -> None:
        deaths = self._health.deaths
        self._health = replace(
            self._health,
            num_restarts=self._health.num_restarts + 1,
            deaths={**deaths, ending.reason: deaths.get(ending.reason, 0) + 1},
            num_quarantined=self._quarantine.num_found,
        )

    def _handle(self, message: frames.ToParent) -> None:
        match message:
            case frames.Chunks(chunks):
                for posted in chunks:
                    if (mailbox := self._mailboxes.get(posted.request_id)) is not None:
                        mailbox.put(bytes(posted.chunk))  # a copy: the frame has what came for others, too
                    self._quarantine.advance(posted.request_id, posted.num_tokens)
                    if posted.is_last:
                        self._quarantine.finish(posted.request_id)
            case frames.Failed(request_id, text, is_refusal):
                self._quarantine.finish(request_id)
                if request_id in self._mailboxes:
                    self._mailboxes[request_id].fail(UnsupportedGrammar(text) if is_refusal else EngineError(text))
            case frames.Cancelled(request_id):
                self._quarantine.leave(request_id)
            case frames.Running(ids):
                self._quarantine.observe_running(ids)
            case frames.Encoded(call, tokens):
                self._quarantine.finish(call)
                self._calls.settle(call, tokens)
            case frames.ImageEncoded(call, image_tokens):
                self._quarantine.finish(call)
                self._calls.settle(call, image_tokens)
            case frames.Done(call):
                self._calls.settle(call, None)
            case frames.CallFailed(call, code, text, param):
                self._quarantine.finish(call)
                self._calls.settle(call, CALL_ERRORS.get(code, EngineError)(text, param=param))
            case frames.Activity(running, waiting, batch_size, cache):
                self._health = replace(
                    self._health, num_running=running, num_waiting=waiting, batch_size=batch_size, cache=cache
                )
            case frames.Alive(step):
                if self._watchdog.hear(step):
                    self._quarantine.observe_step(step)
                    self._health = replace(self._health, step=step)
            case frames.Progress(fraction):
                self._health = replace(self._health, progress=fraction)
            case frames.Ready(info, vocabulary, lost_adapters):
                self._lose_adapters(lost_adapters)
                self._become_ready(info, vocabulary)
            case frames.LoadFailed():
                pass  # the child's last words, see _converse

    def _become_ready(self, info: EngineInfo, vocabulary: Vocabulary) -> None:
        self._info, self._ready_at = info, monotonic()
        if vocabulary != self._vocabulary:  # what has been made for it is found by the object
            self._vocabulary = vocabulary
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
            deaths=self._health.deaths,
            num_quarantined=self._health.num_quarantined,
            lost_adapters=self._health.lost_adapters,
        )
