"""An engine in the test's hand, and jobs for it."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from prometheus_client import CollectorRegistry

from octavo.core.adapters import Adapter
from octavo.core.caller import ANYONE, Caller
from octavo.core.fair_queue import Owner
from octavo.core.images import Image
from octavo.core.limits import Limits
from octavo.core.output import FinishReason, TextEvent, TokenChunk, TokenLogprob
from octavo.core.request import Choice, GenerationRequest, LogprobParams
from octavo.core.sampling import SamplingParams
from octavo.engine.base import EngineHealth, EngineInfo, EngineState
from octavo.engine.scripted import ByteTokenizer, ScriptedEngine
from octavo.service import (
    AdapterFiles,
    AdapterFolder,
    AdapterLoader,
    AdapterOrder,
    GenerationJob,
    GenerationService,
    ModelRegistry,
    ServedAdapter,
    ServedModel,
)
from octavo.telemetry.metrics import Metrics


class PuppetEngine:
    """Gives each request the chunks that the test sends, and remembers which requests were opened and closed.

    adapters: those that are loaded, by key. adapter_refusal: raised in place of loading one, which waits for may_load.
    has_closed: set once a request is closed.
    loads: set once one is to be loaded. most_loading: how many were at a time. lost_adapters: keys of those it lost.
    """

    def __init__(self, num_slots: int = 8) -> None:
        self.info = EngineInfo(context_length=100, num_slots=num_slots, chat_template=None, fingerprint="fp")
        self.tokenizer = ByteTokenizer(())
        self.num_waiting = 0
        self.opened: list[str] = []
        self.closed: list[str] = []
        self.has_closed = asyncio.Event()
        self.adapters: dict[str, Adapter] = {}
        self.adapter_refusal: Exception | None = None
        self.lost_adapters: frozenset[str] = frozenset()
        self.most_loading = 0
        self._num_loading = 0
        self.loads = asyncio.Event()
        self.may_load = asyncio.Event()
        self.may_load.set()
        self._items: defaultdict[str, asyncio.Queue[TokenChunk | Exception | None]] = defaultdict(asyncio.Queue)

    def send(
        self,
        request_id: str,
        text: str,
        finish_reason: FinishReason | None = None,
        *,
        logprobs: Sequence[float] = (),
        num_cached: int = 0,
        queue_seconds: float = 0.0,
    ) -> None:
        """A token for each byte of the text."""
        tokens = tuple(text.encode())
        told = tuple(map(TokenLogprob, tokens, logprobs))
        chunk = TokenChunk(tokens, finish_reason, told, num_cached=num_cached, queue_seconds=queue_seconds)
        self._items[request_id].put_nowait(chunk)

    def fail(self, request_id: str, error: Exception) -> None:
        self._items[request_id].put_nowait(error)

    def end_silently(self, request_id: str) -> None:
        self._items[request_id].put_nowait(None)

    async def generate(self, request: GenerationRequest) -> AsyncGenerator[TokenChunk, None]:
        self.opened.append(request.id)
        try:
            while (item := await self._items[request.id].get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            try:
                await asyncio.sleep(0)  # to close takes a turn of the loop
            finally:
                self.closed.append(request.id)
                self.has_closed.set()

    def hold_images(self, images: Sequence[Image]) -> AbstractContextManager[None]:
        return nullcontext()

    async def load_adapter(self, adapter: Adapter) -> None:
        self._num_loading += 1
        self.loads.set()
        self.most_loading = max(self.most_loading, self._num_loading)
        await asyncio.sleep(0)
        await self.may_load.wait()
        self._num_loading -= 1
        if self.adapter_refusal is not None:
            raise self.adapter_refusal
        self.adapters[adapter.key] = adapter

    async def unload_adapter(self, key: str) -> None:
        del self.adapters[key]

    def health(self) -> EngineHealth:
        return EngineHealth(EngineState.READY, num_waiting=self.num_waiting, lost_adapters=self.lost_adapters)

    async def close(self) -> None:
        self._items.clear()


def job_of(
    engine: PuppetEngine | ScriptedEngine,
    num_choices: int = 1,
    *,
    n: int | None = None,
    num_prompts: int = 1,
    stop: tuple[str, ...] = (),
    name: str = "r",
    model: ServedModel | None = None,
    owner: Owner = (),
    caller: Caller = ANYONE,
) -> GenerationJob:
    """num_choices for each prompt, of which the n best are asked for; all, if nothing is said."""
    n = num_choices if n is None else n
    logprobs = LogprobParams(of_output=n < num_choices)
    requests = [
        GenerationRequest(f"{name}{index}", (65,), 50, SamplingParams(), logprobs=logprobs, owner=owner)
        for index in range(num_prompts * num_choices)
    ]
    choices = [Choice(index, request, stop) for index, request in enumerate(requests)]
    model = model or ServedModel("m", engine, 0)
    return GenerationJob(name, model, tuple(choices), num_prompts, n=n, best_of=num_choices, caller=caller)


async def start(service: GenerationService, job: GenerationJob) -> "asyncio.Task[list[TextEvent]]":
    """Reads a job to its end; its engine requests are open when this returns."""

    async def read() -> list[TextEvent]:
        return [event async for event in service.stream(job)]

    task = asyncio.create_task(read())
    await turns(5)
    return task


async def turns(number: int) -> None:
    """Lets everything that is ready go on, that many times."""
    for _ in range(number):
        await asyncio.sleep(0)


async def abandon(*tasks: "asyncio.Task[list[TextEvent]]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


class AdapterWorld:
    """A model that is served by a puppet engine, and what loads its adapters from the files of a folder."""

    def __init__(self, folder: Path, *, engine: PuppetEngine | None = None, limits: Limits | None = None) -> None:
        limits = limits or Limits()
        self.engine = engine or PuppetEngine()
        self.base = ServedModel("m", self.engine, 0)
        self.models = ModelRegistry([self.base], limits)
        self.metrics = Metrics(CollectorRegistry())
        self.service = GenerationService(self.metrics, limits)
        files = AdapterFiles(AdapterFolder(folder).find, hub=None, max_size=limits.max_adapter_size)
        self.loader = AdapterLoader(self.models, self.metrics, files)
        (folder / "a.gguf").write_bytes(b"adapter")
        (folder / "b.gguf").write_bytes(b"another")

    def order(self, id: str, reference: str = "a.gguf", scale: float = 1.0) -> AdapterOrder:
        return AdapterOrder(id, self.base, reference, scale)

    async def load(self, id: str, reference: str = "a.gguf", scale: float = 1.0) -> ServedAdapter:
        return await self.loader.load(self.order(id, reference, scale))

    async def start(self, model: ServedModel, name: str, num_choices: int = 1) -> "asyncio.Task[list[TextEvent]]":
        """A request for the model; its choices are those of `PuppetEngine.send`."""
        return await start(self.service, job_of(self.engine, num_choices, name=name, model=model))
