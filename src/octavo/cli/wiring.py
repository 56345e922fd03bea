"""From settings to the application over an engine."""

import time
from dataclasses import dataclass
from pathlib import Path

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from octavo.api.app import create_app
from octavo.cli.access import Access
from octavo.cli.first_adapters import FirstAdapters, operators_adapters
from octavo.cli.prompt_log import build_prompt_log
from octavo.config import Settings, flag_of
from octavo.core.limits import Limits
from octavo.engine.base import Engine
from octavo.errors import ConfigError
from octavo.server.bounds import ConnectionBounds
from octavo.service import (
    AdapterFiles,
    AdapterFolder,
    AdapterHub,
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
from octavo.streaming import ContentFilter
from octavo.telemetry import Trace, no_trace
from octavo.telemetry.metrics import Metrics
from octavo.telemetry.process_metrics import add_process_metrics

MAX_BODY_WITH_IMAGES = 32 * 2**20


@dataclass(frozen=True, slots=True)
class Parts:
    """What answers requests, what it calls the model, and the adapters to load before it is ready."""

    model_id: str
    service: GenerationService
    prompt_log: PromptLog | None
    first_adapters: FirstAdapters
    metrics: Metrics
    app: FastAPI


def build_parts(
    settings: Settings,
    access: Access,
    file: Path | None,
    engine: Engine,
    content_filter: ContentFilter | None,
    trace: Trace = no_trace,
) -> Parts:
    """file: the model's, None for the scripted engine. Raises ConfigError."""
    model_id = settings.alias or (file.name.removesuffix(".gguf") if file else "scripted")
    registry = CollectorRegistry()
    limits, metrics = limits_of(settings), Metrics(registry)
    add_process_metrics(registry, lambda: engine.health().pid)
    limiter = RateLimiter(metrics)
    service = GenerationService(
        metrics,
        limits,
        content_filter=content_filter,
        request_timeout=settings.request_timeout,
        limiter=limiter,
    )
    model = ServedModel(model_id, engine, int(time.time()), isolates_users=settings.isolate_users)
    models = ModelRegistry([model], limits)
    loader = AdapterLoader(models, metrics, clients_adapters(settings))
    prompt_log = build_prompt_log(settings)
    app = create_app(
        models=models,
        adapters=loader,
        service=service,
        images=ImageSource(limits, metrics, image_hosts(settings)),
        metrics=metrics,
        limits=limits,
        keyring=access.keyring,
        hosts=access.hosts,
        origins=access.origins,
        limiter=limiter,
        prompt_log=prompt_log,
        is_strict=settings.strict,
        trace=trace,
    )
    first_adapters = FirstAdapters(
        settings.adapters, model, models, loader.over(operators_adapters(limits.max_adapter_size))
    )
    return Parts(model_id, service, prompt_log, first_adapters, metrics, app)


def clients_adapters(settings: Settings) -> AdapterFiles:
    """What clients may load. Raises ConfigError."""
    hub = AdapterHub() if settings.allow_adapter_downloads else None
    max_size = int(settings.max_adapter_size)
    if settings.adapter_dir is None:
        return AdapterFiles(no_folder, hub, max_size)
    folder = Path(settings.adapter_dir).expanduser().absolute()
    if not folder.is_dir():
        raise ConfigError(f"{flag_of('adapter_dir')} {settings.adapter_dir!r}: there is no such folder.")
    return AdapterFiles(AdapterFolder(folder).find, hub, max_size)


def image_hosts(settings: Settings) -> ImageHosts:
    """From which images may be fetched. Raises ConfigError."""
    try:
        return ImageHosts(settings.allow_image_hosts)
    except ValueError as error:
        raise ConfigError(f"{flag_of('allow_image_hosts')} {error}.") from error


def connection_bounds(settings: Settings) -> ConnectionBounds:
    return ConnectionBounds(
        max_headers=int(settings.max_headers),
        max_receive_time=settings.max_receive_time,
        max_unread=int(settings.max_unread),
        max_unread_time=settings.max_unread_time,
        max_connections=settings.max_connections,
    )


def limits_of(settings: Settings) -> Limits:
    return Limits(
        max_body=int(settings.max_body or (MAX_BODY_WITH_IMAGES if settings.mmproj else Limits().max_body)),
        max_json_depth=settings.max_json_depth,
        max_json_items=settings.max_json_items,
        max_n=settings.max_n,
        max_prompts=settings.max_prompts,
        max_stop_strings=settings.max_stop_strings,
        max_stop_length=settings.max_stop_length,
        max_stop_tokens=settings.max_stop_tokens,
        max_top_logprobs=settings.max_top_logprobs,
        max_messages=settings.max_messages,
        max_images=settings.max_images,
        max_image_size=int(settings.max_image_size),
        max_image_pixels=settings.max_image_pixels,
        max_fetch_time=settings.max_fetch_time,
        max_adapters=settings.max_adapters,
        max_adapter_size=int(settings.max_adapter_size),
        max_tools=settings.max_tools,
        max_tools_size=int(settings.max_tools_size),
        max_schema=int(settings.max_schema),
        max_schema_depth=settings.max_schema_depth,
        max_compile_time=settings.max_compile_time,
        max_queue_per_slot=settings.max_queue_per_slot,
    )
