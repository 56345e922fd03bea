"""The batching engine's async face: requests come in on an event loop, steps run in the thread that calls `run`."""

import asyncio
import queue
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass

from octavo.core.grammar import Grammar
from octavo.core.output import TokenChunk
from octavo.core.request import GenerationRequest
from octavo.engine.base import EngineHealth, EngineInfo, EngineState, LocalTokenizer
from octavo.engine.batching.composer import Composer
from octavo.engine.batching.core import EngineCore, Output
from octavo.engine.batching.grammars import GrammarCompiler, GrammarState
from octavo.engine.batching.runner import ModelRunner
from octavo.errors import EngineError, EngineUnavailable

Stream = asyncio.Queue[TokenChunk | EngineError | EngineUnavailable]


@dataclass(frozen=True, slots=True)
class Submit:
    request: GenerationRequest
    grammar: GrammarState | None


@dataclass(frozen=True, slots=True)
class Cancel:
    request_id: str


class Wake:
    """Says nothing, but ends a wait."""


Command = Submit | Cancel | Wake


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
    ) -> None:
        """max_saved: tokens whose keys and values may be kept in the host's memory."""
        self._runner = runner
        self._tokenizer = tokenizer
        self._info = info
        eog_tokens = tokenizer.vocabulary.eog_tokens
        self._core = EngineCore(runner, composer, eog_tokens=eog_tokens, max_saved=max_saved)
        self._grammars = GrammarCompiler(tokenizer.vocabulary, tokenizer.encode_text)
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._streams: dict[str, Stream] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    @property
    def info(self) -> EngineInfo:
        return self._info

    @property
    def tokenizer(self) -> LocalTokenizer:
        return self._tokenizer

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[TokenChunk, None]:
        if self._is_closed:
            raise EngineUnavailable("The engine is stopped.")
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

    def health(self) -> EngineHealth:
        core = self._core
        state = EngineState.CLOSED if self._is_closed else EngineState.READY
        return EngineHealth(
            state, num_running=core.num_running, num_waiting=core.num_waiting, batch_size=core.batch_size
        )

    async def close(self) -> None:
        self._is_closed = True
        self._commands.put(Wake())
        for stream in self._streams.values():
            stream.put_nowait(EngineUnavailable("The engine is stopping."))

    def run(self) -> None:
        if not self._is_closed:
            self._grammars.warm_up()
        try:
            while not self._is_closed:
                outputs = self._obey()
                if self._core.has_work:
                    outputs += self._core.step()
                if outputs and self._loop is not None:
                    self._loop.call_soon_threadsafe(self._deliver, outputs)
        finally:
            self._core.close()
            self._grammars.close()
            self._runner.close()

    def _obey(self) -> list[Output]:
        """Carry out what was asked since the last step; with nothing to compute, wait for it."""
        outputs: list[Output] = []
        while not self._commands.empty() or not (self._core.has_work or outputs or self._is_closed):
            match self._commands.get():
                case Submit(request, grammar):
                    outputs += self._core.submit(request, grammar)
                case Cancel(request_id):
                    self._core.cancel(request_id)
                case Wake():
                    pass
        return outputs

    def _deliver(self, outputs: Iterable[Output]) -> None:
        for request_id, item in outputs:
            if request_id in self._streams:
                self._streams[request_id].put_nowait(item)
