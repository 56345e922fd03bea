"""The batching engine's async face: requests come in on an event loop, steps run in the thread that calls `run`."""

import asyncio
import queue
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from octavo.core.adapters import Adapter
from octavo.core.grammar import Grammar
from octavo.core.images import Image, ImageSpan
from octavo.core.output import TokenChunk
from octavo.core.request import GenerationRequest
from octavo.engine.base import EngineHealth, EngineInfo, EngineState, LocalTokenizer
from octavo.engine.batching.composer import Composer
from octavo.engine.batching.core import EngineCore, Output
from octavo.engine.batching.grammars import GrammarCompiler, GrammarState
from octavo.engine.batching.image_store import ImageStore
from octavo.engine.batching.runner import ModelRunner, RunnerFailed
from octavo.engine.batching.tokenizer import SeeingTokenizer
from octavo.errors import EngineError, EngineUnavailable, ImageRefused

Stream = asyncio.Queue[TokenChunk | EngineError | EngineUnavailable]


@dataclass(frozen=True, slots=True)
class Submit:
    request: GenerationRequest
    grammar: GrammarState | None


@dataclass(frozen=True, slots=True)
class Cancel:
    request_id: str


@dataclass(frozen=True, slots=True, eq=False)
class Perform:
    """Work with the model, between two steps."""

    work: Callable[[], None]
    done: Future[None]


class Wake:
    """Says nothing, but ends a wait."""


Command = Submit | Cancel | Perform | Wake

AdapterTrial = Callable[[Adapter], None]
"""Tries an adapter where it can do no harm, in the calling thread. Raises AdapterRefused."""


class BatchingEngine:
    """Implements `HostedEngine` over a `ModelRunner`. All of `generate` must run on one event loop."""

    def __init__(
        self,
        runner: ModelRunner,
        composer: Composer,
        tokenizer: LocalTokenizer,
        info: EngineInfo,
        *,
        max_saved: int = 0,
        images: ImageStore | None = None,
        adapter_trial: AdapterTrial = lambda _: None,
    ) -> None:
        """max_saved: tokens whose keys and values may be kept in the host's memory.

        images: what the model sees; None where it sees nothing. adapter_trial: of those that are loaded while it runs.
        """
        self._runner = runner
        self._tokenizer = SeeingTokenizer(tokenizer, images)
        self._info = info
        self._images = images
        self._adapter_trial = adapter_trial
        eog_tokens = tokenizer.vocabulary.eog_tokens
        self._core = EngineCore(
            runner,
            composer,
            eog_tokens=eog_tokens,
            max_saved=max_saved,
            embeddings_of=images.embeddings if images is not None else lambda _: None,
        )
        self._grammars = GrammarCompiler(tokenizer.vocabulary, tokenizer.encode_text)
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._streams: dict[str, Stream] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False
        self._num_steps = 0
        self._step = 0

    @property
    def info(self) -> EngineInfo:
        return self._info

    @property
    def tokenizer(self) -> SeeingTokenizer:
        return self._tokenizer

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[TokenChunk, None]:
        if self._is_closed:
            raise EngineUnavailable("The engine is stopped.")
        if request.images and self._images is None:
            raise EngineError("The model sees no images.")
        grammar = None if request.grammar.is_free else await self._begin(request.grammar)
        self._loop = asyncio.get_running_loop()
        stream = self._streams[request.id] = Stream()
        self._commands.put(Submit(request, grammar))
        try:
            while True:
                item = await stream.get()
                if not isinstance(item, TokenChunk):
                    raise item
                yield item
                if item.finish_reason is not None:
                    return
        finally:
            del self._streams[request.id]
            self._commands.put(Cancel(request.id))

    async def _begin(self, grammar: Grammar) -> GrammarState:
        """Compiled while everybody else goes on."""
        state = await self._grammars.begin(grammar)
        if self._is_closed:
            raise EngineUnavailable("The engine is stopped.")
        return state

    def hold_images(self, images: Sequence[Image]) -> AbstractContextManager[None]:
        return nullcontext() if self._images is None else self._images.held(images)

    async def load_adapter(self, adapter: Adapter) -> None:
        await asyncio.to_thread(self._adapter_trial, adapter)
        await self._perform(lambda: self._core.load_adapter(adapter))

    async def unload_adapter(self, key: str) -> None:
        await self._perform(lambda: self._core.unload_adapter(key))

    def restore_adapter(self, adapter: Adapter) -> None:
        self._core.load_adapter(adapter)

    async def _perform(self, work: Callable[[], None]) -> None:
        if self._is_closed:
            raise EngineUnavailable("The engine is stopped.")
        command = Perform(work, Future())
        self._commands.put(command)
        await asyncio.wrap_future(command.done)

    @property
    def running(self) -> frozenset[str]:
        return self._core.running

    def health(self) -> EngineHealth:
        core = self._core
        state = EngineState.CLOSED if self._is_closed else EngineState.READY
        return EngineHealth(
            state,
            num_running=core.num_running,
            num_waiting=core.num_waiting,
            batch_size=core.batch_size,
            step=self._step,
            cache=core.cache_use,
        )

    async def close(self) -> None:
        self._is_closed = True
        if self._images is not None:
            self._images.stop()
        self._commands.put(Wake())
        for stream in self._streams.values():
            stream.put_nowait(EngineUnavailable("The engine is stopping."))

    def run(self) -> None:
        self._begin_step()
        if not self._is_closed:
            self._grammars.warm_up()
        try:
            while not self._is_closed:
                self._turn(waits=True)
                self._see()
        finally:
            self._refuse_commands()
            self._core.close()
            self._grammars.close()
            if self._images is not None:
                self._images.close()
            self._runner.close()

    def _turn(self, *, waits: bool) -> None:
        """Do what was asked, and a step. waits: for something to do."""
        self._begin_step()
        outputs = self._obey(waits=waits)
        if self._core.has_work:
            outputs += self._core.step()
        self._hand_out(outputs)

    def _see(self) -> None:
        """Encode a part of an image for those who cannot go on without it; the others have turns meanwhile."""
        if self._images is None or (span := self._core.unseen_span) is None:
            return
        try:
            self._images.encode(span, lambda: self._pause(span))
        except RunnerFailed:
            raise
        except (EngineError, ImageRefused) as error:
            self._hand_out(self._core.fail_image(span, error.message))

    def _pause(self, span: ImageSpan) -> bool:
        self._turn(waits=False)
        return not self._is_closed and self._core.needs(span)

    def _obey(self, *, waits: bool) -> list[Output]:
        outputs: list[Output] = []
        while not self._commands.empty() or (waits and not (self._core.has_work or outputs or self._is_closed)):
            match self._next_command():
                case Submit(request, grammar):
                    outputs += self._core.submit(request, grammar)
                case Cancel(request_id):
                    self._core.cancel(request_id)
                case Perform(work, done):
                    _perform(work, done)
                case Wake():
                    pass
        return outputs

    def _next_command(self) -> Command:
        """Where there is none yet, waiting for it is no step."""
        if self._commands.empty():
            self._step = 0
        command = self._commands.get()
        self._begin_step()
        return command

    def _begin_step(self) -> None:
        self._num_steps += 1
        self._step = self._num_steps

    def _refuse_commands(self) -> None:
        """Nobody may wait for ever for what is not done any more."""
        while not self._commands.empty():
            command = self._commands.get()
            if isinstance(command, Perform) and command.done.set_running_or_notify_cancel():
                command.done.set_exception(EngineUnavailable("The engine is stopped."))

    def _hand_out(self, outputs: list[Output]) -> None:
        if outputs and self._loop is not None:
            self._loop.call_soon_threadsafe(self._deliver, outputs)

    def _deliver(self, outputs: Iterable[Output]) -> None:
        for request_id, item in outputs:
            if request_id in self._streams:
                self._streams[request_id].put_nowait(item)


def _perform(work: Callable[[], None], done: Future[None]) -> None:
    if not done.set_running_or_notify_cancel():
        return
    try:
        work()
    except Exception as error:
        done.set_exception(error)
    else:
        done.set_result(None)
