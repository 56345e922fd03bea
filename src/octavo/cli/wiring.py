"""From settings to the parts that make a server."""

import time
from dataclasses import dataclass
from pathlib import Path

import msgspec
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from octavo.api.app import create_app
from octavo.cli.demo import find_demo_model
from octavo.config import Settings, flag_of
from octavo.core.limits import Limits
from octavo.engine.specs import EngineSpec, LlamaSpec, ScriptedSpec
from octavo.engine.worker import WorkerEngine
from octavo.errors import ConfigError
from octavo.service import GenerationService, ModelRegistry, ServedModel
from octavo.streaming import ContentFilter
from octavo.telemetry import Metrics


@dataclass(frozen=True, slots=True)
class Parts:
    """A server's parts, not yet started. file: the model's, None for the scripted engine."""

    model_id: str
    file: Path | None
    engine: WorkerEngine
    service: GenerationService
    app: FastAPI


def build_parts(settings: Settings) -> Parts:
    """Raises ConfigError."""
    file = model_file(settings)
    engine = build_engine(settings, file)
    model_id = settings.alias or (file.name.removesuffix(".gguf") if file else "scripted")
    limits, metrics = limits_of(settings), Metrics(CollectorRegistry())
    service = GenerationService(
        metrics, limits, content_filter=content_filter(settings), request_timeout=settings.request_timeout
    )
    app = create_app(
        models=ModelRegistry([ServedModel(model_id, engine, int(time.time()))]),
        service=service,
        metrics=metrics,
        limits=limits,
        is_strict=settings.strict,
    )
    return Parts(model_id, file, engine, service, app)


def model_file(settings: Settings) -> Path | None:
    """The file of the model to serve, None for the scripted engine. Raises ConfigError where it is missing."""
    if settings.engine == "scripted":
        return None
    if not settings.models:
        return find_demo_model()
    path = Path(settings.models[0]).expanduser().absolute()
    if path.is_dir():
        raise ConfigError(f"MODEL {settings.models[0]!r} is a folder; this version serves .gguf files.")
    if not path.is_file():
        raise ConfigError(f"MODEL {settings.models[0]!r}: there is no such file.")
    return path


def build_engine(settings: Settings, file: Path | None) -> WorkerEngine:
    if file is None:
        return WorkerEngine(scripted_spec(settings))
    spec = llama_spec(settings, file)
    return WorkerEngine(spec, fallback=msgspec.structs.replace(spec, use_extra_buffers=False))


def llama_spec(settings: Settings, file: Path) -> LlamaSpec:
    return LlamaSpec(
        path=str(file),
        context_length=settings.ctx,
        num_slots=settings.slots,
        num_threads=settings.threads,
        token_budget=settings.token_budget,
        cache_type_k=settings.cache_type_k,
        cache_type_v=settings.cache_type_v,
        deterministic=settings.deterministic,
    )


def scripted_spec(settings: Settings) -> EngineSpec:
    spec = ScriptedSpec(
        text=settings.scripted_text,
        piece_bytes=settings.scripted_piece_bytes,
        delay=settings.scripted_delay,
        load_delay=settings.scripted_load_delay,
        raise_at=settings.scripted_raise_at,
        hang_at=settings.scripted_hang_at,
        exit_at=settings.scripted_exit_at,
    )
    sizes = {"context_length": settings.ctx, "num_slots": settings.slots}
    return msgspec.structs.replace(spec, **{name: size for name, size in sizes.items() if size is not None})


def content_filter(settings: Settings) -> ContentFilter | None:
    """None where nothing is filtered. Raises ConfigError for a bad pattern."""
    if not settings.content_filter:
        return None
    try:
        return ContentFilter(settings.content_filter)
    except ValueError as error:
        raise ConfigError(f"{flag_of('content_filter')}: {error}") from error


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
