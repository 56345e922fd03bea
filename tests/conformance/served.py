"""The real application, service, scheduler and sampler around a model whose logits are given."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from prometheus_client import CollectorRegistry

from conformance.ask import Asker
from conformance.models import GivenModel, GivenTokenizer
from octavo.api.app import create_app
from octavo.core.limits import Limits
from octavo.core.output import TokenChunk
from octavo.core.request import GenerationRequest
from octavo.engine.base import Engine, EngineHealth, EngineInfo, Tokenizer
from octavo.engine.batching.composer import MixedSteps
from octavo.engine.batching.engine import BatchingEngine
from octavo.engine.batching.runner import RunnerLimits
from octavo.engine.runners.scripted import ScriptedRunner
from octavo.service import GenerationService, ModelRegistry, ServedModel
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

    def health(self) -> EngineHealth:
        return self._engine.health()

    async def close(self) -> None:
        await self._engine.close()


class Served(Asker):
    """A client of a served model, and what it may look at behind the server's back."""

    def __init__(
        self, client: httpx.AsyncClient, name: str, model: GivenModel, engine: Listener, service: GenerationService
    ) -> None:
        super().__init__(client, name)
        self.model = model
        self.service = service
        self._engine = engine

    @property
    def requests(self) -> list[GenerationRequest]:
        """All that ever reached the engine."""
        return self._engine.requests

    async def wait_for_requests(self, number: int) -> None:
        await self._engine.wait_for_requests(number)


@asynccontextmanager
async def served(
    model: GivenModel, *, name: str = NAME, is_strict: bool = False, **service_options: Any
) -> AsyncIterator[Served]:
    """service_options: of GenerationService."""
    limits, metrics = Limits(), Metrics(CollectorRegistry())
    batching = _engine_of(model)
    steps = asyncio.create_task(asyncio.to_thread(batching.run))
    engine = Listener(batching)
    service = GenerationService(metrics, limits, **service_options)
    models = ModelRegistry([ServedModel(name, engine, created=1_700_000_000)])
    app = create_app(models=models, service=service, metrics=metrics, limits=limits, is_strict=is_strict)
    try:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://octavo") as client:
            yield Served(client, name, model, engine, service)
    finally:
        await batching.close()
        await steps


def _engine_of(model: GivenModel) -> BatchingEngine:
    limits = RunnerLimits(
        num_slots=model.num_slots,
        context_length=model.context_length,
        max_batch_tokens=64,
        vocabulary_size=model.vocabulary.size,
        max_logits=64,
    )
    info = EngineInfo(model.context_length, model.num_slots, model.template, "fp_given")
    runner = ScriptedRunner(limits, model.next_logits)
    return BatchingEngine(runner, MixedSteps(limits), GivenTokenizer(model.vocabulary), info)
