"""From settings to the application over an engine."""

import time
from dataclasses import dataclass
from pathlib import Path

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from octavo.api.app import create_app
from octavo.config import Settings
from octavo.core.limits import Limits
from octavo.engine.base import Engine
from octavo.service import GenerationService, ModelRegistry, ServedModel
from octavo.streaming import ContentFilter
from octavo.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Parts:
    """What answers requests, and what it calls the model."""

    model_id: str
    service: GenerationService
    app: FastAPI


def build_parts(settings: Settings, file: Path | None, engine: Engine, content_filter: ContentFilter | None) -> Parts:
    """file: the model's, None for the scripted engine."""
    model_id = settings.alias or (file.name.removesuffix(".gguf") if file else "scripted")
    limits, metrics = limits_of(settings), Metrics(CollectorRegistry())
    service = GenerationService(
        metrics, limits, content_filter=content_filter, request_timeout=settings.request_timeout
    )
    model = ServedModel(model_id, engine, int(time.time()), isolates_users=settings.isolate_users)
    app = create_app(
        models=ModelRegistry([model]),
        service=service,
        metrics=metrics,
        limits=limits,
        is_strict=settings.strict,
    )
    return Parts(model_id, service, app)


def limits_of(settings: Settings) -> Limits:
    return Limits(
        max_body=int(settings.max_body),
        max_json_depth=settings.max_json_depth,
        max_n=settings.max_n,
        max_prompts=settings.max_prompts,
        max_stop_strings=settings.max_stop_strings,
        max_stop_length=settings.max_stop_length,
        max_stop_tokens=settings.max_stop_tokens,
        max_top_logprobs=settings.max_top_logprobs,
        max_messages=settings.max_messages,
        max_tools=settings.max_tools,
        max_tools_size=int(settings.max_tools_size),
        max_schema=int(settings.max_schema),
        max_schema_depth=settings.max_schema_depth,
        max_compile_time=settings.max_compile_time,
        max_queue_per_slot=settings.max_queue_per_slot,
    )
