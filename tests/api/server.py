"""The application around a scripted engine that can be watched."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, replace

import httpx
import uvicorn
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from octavo.api.app import create_app
from octavo.core.adapters import Adapter
from octavo.core.browser_access import AllowedHosts, AllowedOrigins
from octavo.core.images import Image, ImageTokens
from octavo.core.keyring import Keyring, OpenKeyring
from octavo.core.limits import Limits
from octavo.core.output import TokenChunk
from octavo.core.request import GenerationRequest
from octavo.core.vocabulary import InfillTokens, Vocabulary
from octavo.engine.base import EngineHealth, EngineInfo, Fragment
from octavo.engine.scripted import ByteTokenizer, ScriptedEngine
from octavo.engine.specs import ScriptedSpec
from octavo.engine.worker.frames import DropImage, HoldImage
from octavo.engine.worker.held_images import HeldImages
from octavo.errors import EngineUnavailable
from octavo.service import (
    AdapterFiles,
    AdapterLoader,
    GenerationService,
    ImageHosts,
    ImageSource,
    ModelRegistry,
    RateLimiter,
    ServedModel,
    no_folder,
)
from octavo.store.prompt_log import PromptLog
from octavo.telemetry.metrics import Metrics
from support.pictures import image_tokens

MODEL = "demo"
NO_ADAPTERS = AdapterFiles(no_folder, hub=None, max_size=0)
OPEN = OpenKeyring()
OWN_NAMES = AllowedHosts(["octavo"])
NO_ORIGINS = AllowedOrigins()


@dataclass(frozen=True, slots=True)
class WatchedTokenizer:
    """A byte tokenizer with another vocabulary."""

    tokenizer: ByteTokenizer
    vocabulary: Vocabulary
    images: HeldImages

    async def encode(self, fragments: Sequence[Fragment]) -> tuple[int, ...]:
        return await self.tokenizer.encode(fragments)

    async def encode_image(self, image: Image) -> ImageTokens:
        with self.images.held((image,)):  # as the engine in another process does
            return image_tokens(image)


class WatchedEngine:
    """A scripted engine that tells what it was asked and which of its streams have ended.

    refusal: raised in place of the first token. health_now: shown in place of the engine's own health.
    chat_template, infill: as if the model had them. adapter_refusal: raised in place of loading an adapter.
    has_vision: whether it says that it sees images. images: all that it was ever sent, held_images: that it has now.
    """

    def __init__(self, spec: ScriptedSpec) -> None:
        self._engine = ScriptedEngine(spec)
        self.requests: list[GenerationRequest] = []
        self._arrival = asyncio.Event()
        self.started = asyncio.Event()
        self.ended = asyncio.Event()
        self.num_open = 0
        self.refusal: Exception | None = None
        self.health_now: EngineHealth | None = None
        self.chat_template: str | None = None
        self.infill: InfillTokens | None = None
        self.adapter_refusal: Exception | None = None
        self.adapters: dict[str, Adapter] = {}
        self.unloaded = asyncio.Event()
        self.has_vision = False
        self.images: list[Image] = []
        self.held_images: dict[str, Image] = {}
        self._holder = HeldImages(self._hold_or_drop)

    @property
    def info(self) -> EngineInfo:
        return replace(self._engine.info, chat_template=self.chat_template, has_vision=self.has_vision)

    @property
    def tokenizer(self) -> WatchedTokenizer:
        vocabulary = replace(self._engine.tokenizer.vocabulary, infill=self.infill)
        return WatchedTokenizer(self._engine.tokenizer, vocabulary, self._holder)

    async def generate(self, request: GenerationRequest) -> AsyncIterator[TokenChunk]:
        self.requests.append(request)
        self._arrival.set()
        self.num_open += 1
        try:
            if self.refusal is not None:
                raise self.refusal
            async with aclosing(self._engine.generate(_without_images(request))) as chunks:
                async for chunk in chunks:
                    self.started.set()
                    yield chunk
        finally:
            self.num_open -= 1
            if self.num_open == 0:
                self.ended.set()

    async def wait_for_requests(self, number: int) -> None:
        while len(self.requests) < number:
            self._arrival.clear()
            await self._arrival.wait()

    def hold_images(self, images: Sequence[Image]) -> AbstractContextManager[None]:
        return self._holder.held(images)

    def _hold_or_drop(self, message: HoldImage | DropImage) -> None:
        match message:
            case HoldImage(image):
                self.images.append(image)
                self.held_images[image.digest] = image
            case DropImage(digest):
                del self.held_images[digest]

    async def load_adapter(self, adapter: Adapter) -> None:
        if self.adapter_refusal is not None:
            raise self.adapter_refusal
        await self._engine.load_adapter(adapter)
        self.adapters[adapter.key] = adapter

    async def unload_adapter(self, key: str) -> None:
        await self._engine.unload_adapter(key)
        del self.adapters[key]
        self.unloaded.set()

    def health(self) -> EngineHealth:
        return self.health_now or self._engine.health()

    async def close(self) -> None:
        await self._engine.close()


def _without_images(request: GenerationRequest) -> GenerationRequest:
    """What a scripted engine, which has none, can be asked."""
    return replace(request, prompt_tokens=tuple(token for token in request.prompt_tokens if token >= 0), images=())


class LoadingEngine(WatchedEngine):
    """Has never been ready."""

    @property
    def info(self) -> EngineInfo:
        raise EngineUnavailable("The model is loading.", retry_after=7)

    @property
    def tokenizer(self) -> WatchedTokenizer:
        raise EngineUnavailable("The model is loading.", retry_after=7)


@dataclass(frozen=True, slots=True)
class App:
    asgi: FastAPI
    engine: WatchedEngine

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.ASGITransport(self.asgi), base_url="http://octavo")


def build(
    engine: WatchedEngine,
    *,
    limits: Limits | None = None,
    is_strict: bool = False,
    adapters: AdapterFiles = NO_ADAPTERS,
    image_hosts: Sequence[str] = (),
    keyring: Keyring = OPEN,
    hosts: AllowedHosts = OWN_NAMES,
    origins: AllowedOrigins = NO_ORIGINS,
    prompt_log: PromptLog | None = None,
) -> App:
    limits = limits or Limits()
    metrics = Metrics(CollectorRegistry())
    models = ModelRegistry([ServedModel(MODEL, engine, created=1_700_000_000)], limits)
    limiter = RateLimiter(metrics)
    service = GenerationService(metrics, limits, limiter=limiter)
    loader = AdapterLoader(models, metrics, adapters)
    app = create_app(
        models=models,
        adapters=loader,
        service=service,
        images=ImageSource(limits, metrics, ImageHosts(image_hosts)),
        metrics=metrics,
        limits=limits,
        keyring=keyring,
        hosts=hosts,
        origins=origins,
        limiter=limiter,
        prompt_log=prompt_log,
        is_strict=is_strict,
    )
    return App(app, engine)


def scripted(text: str = "The quick brown fox.", *, is_strict: bool = False, **spec: int | float) -> App:
    return build(WatchedEngine(ScriptedSpec(text=text, **spec)), is_strict=is_strict)


@asynccontextmanager
async def listening(app: App) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the application behind a real server on a free port."""
    config = uvicorn.Config(app.asgi, host="127.0.0.1", port=0, log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    # asyncio turns Nagle's algorithm off only for sockets that name their protocol.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    task = asyncio.create_task(server.serve([listener]))
    try:
        port = listener.getsockname()[1]
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            yield client
    finally:
        server.should_exit = True
        await task
        listener.close()
