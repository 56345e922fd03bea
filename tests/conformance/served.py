"""The real application, service, scheduler and sampler around a model whose logits are given."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from prometheus_client import CollectorRegistry

from conformance.ask import Asker
from conformance.models import GivenModel, GivenTokenizer
from conformance.vision import GivenVision
from octavo.api.app import create_app
from octavo.core.adapters import Adapter
from octavo.core.browser_access import AllowedHosts, AllowedOrigins
from octavo.core.images import Image
from octavo.core.keyring import OpenKeyring
from octavo.core.limits import Limits
from octavo.core.output import TokenChunk
from octavo.core.request import GenerationRequest
from octavo.engine.base import Engine, EngineHealth, EngineInfo, Tokenizer
from octavo.engine.batching.composer import MixedSteps
from octavo.engine.batching.engine import BatchingEngine
from octavo.engine.batching.image_store import ImageStore
from octavo.engine.batching.runner import RunnerLimits
from octavo.engine.runners.scripted import ScriptedRunner
from octavo.service import (
    AdapterFiles,
    AdapterLoader,
    AdapterOrder,
    GenerationService,
    ImageHosts,
    ImageSource,
    ModelRegistry,
    RateLimiter,
    ServedModel,
)
from octavo.store.prompt_log import PromptLog
from octavo.telemetry.metrics import Metrics

NAME = "given"


class Listener:
    """An engine that remembers what it was asked."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._arrival = asyncio.Event()
        self.requests: list[GenerationRequest] = []

    @property
    def info(self) -> EngineInfo:
        return self._engine.info

    @property
    def tokenizer(self) -> Tokenizer:
        return self._engine.tokenizer

    def generate(self, request: GenerationRequest) -> AsyncGenerator[TokenChunk, None]:
        self.requests.append(request)
        self._arrival.set()
        return self._engine.generate(request)

    async def wait_for_requests(self, number: int) -> None:
        while len(self.requests) < number:
            self._arrival.clear()
            await self._arrival.wait()

    def hold_images(self, images: Sequence[Image]) -> AbstractContextManager[None]:
        return self._engine.hold_images(images)

    async def load_adapter(self, adapter: Adapter) -> None:
        await self._engine.load_adapter(adapter)

    async def unload_adapter(self, key: str) -> None:
        await self._engine.unload_adapter(key)

    def health(self) -> EngineHealth:
        return self._engine.health()

    async def close(self) -> None:
        await self._engine.close()


class Served(Asker):
    """A client of a served model, and what it may look at behind the server's back.

    adapter_keys: by which requests to the engine name the served adapters, by id.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        name: str,
        model: GivenModel,
        engine: Listener,
        service: GenerationService,
        adapter_keys: Mapping[str, str],
    ) -> None:
        super().__init__(client, name)
        self.model = model
        self.service = service
        self.adapter_keys = adapter_keys
        self._engine = engine

    @property
    def requests(self) -> list[GenerationRequest]:
        """All that ever reached the engine."""
        return self._engine.requests

    async def wait_for_requests(self, number: int) -> None:
        await self._engine.wait_for_requests(number)


@asynccontextmanager
async def served(
    model: GivenModel,
    *,
    name: str = NAME,
    adapters: Iterable[str] = (),
    sees: bool = False,
    is_strict: bool = False,
    prompt_log: PromptLog | None = None,
    **service_options: Any,
) -> AsyncIterator[Served]:
    """adapters: ids of those that are served with the model. sees: whether it is shown images.
    service_options: of GenerationService."""
    limits, metrics = Limits(), Metrics(CollectorRegistry())
    batching = _engine_of(model, sees)
    steps = asyncio.create_task(asyncio.to_thread(batching.run))
    engine = Listener(batching)
    service = GenerationService(metrics, limits, **service_options)
    base = ServedModel(name, engine, created=1_700_000_000)
    models = ModelRegistry([base], limits)
    loader = AdapterLoader(models, metrics, AdapterFiles(Path, hub=None, max_size=2**20))
    app = create_app(
        models=models,
        adapters=loader,
        service=service,
        images=ImageSource(limits, metrics, ImageHosts()),
        metrics=metrics,
        limits=limits,
        keyring=OpenKeyring(),
        hosts=AllowedHosts(["octavo"]),
        origins=AllowedOrigins(),
        limiter=RateLimiter(metrics),
        prompt_log=prompt_log,
        is_strict=is_strict,
    )
    try:
        keys = {id: (await loader.load(AdapterOrder(id, base, __file__))).adapter_key for id in adapters}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://octavo") as client:
            yield Served(client, name, model, engine, service, keys)
    finally:
        await batching.close()
        await steps


def _engine_of(model: GivenModel, sees: bool) -> BatchingEngine:
    limits = RunnerLimits(
        num_slots=model.num_slots,
        context_length=model.context_length,
        max_batch_tokens=64,
        vocabulary_size=model.vocabulary.size,
        max_logits=64,
    )
    info = EngineInfo(model.context_length, model.num_slots, model.template, "fp_given", has_vision=sees)
    runner = ScriptedRunner(limits, model.next_logits)
    images = ImageStore(GivenVision()) if sees else None
    return BatchingEngine(runner, MixedSteps(limits), GivenTokenizer(model.vocabulary), info, images=images)
