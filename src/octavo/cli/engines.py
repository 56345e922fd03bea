"""From settings to the engine that they ask for."""

from pathlib import Path

import msgspec

from octavo.cli.demo import find_demo_model
from octavo.config import Settings
from octavo.engine.specs import EngineSpec, LlamaSpec, ScriptedSpec
from octavo.engine.worker import WorkerEngine
from octavo.errors import ConfigError


def model_file(settings: Settings) -> Path | None:
    """The file of the model to serve, None for the scripted engine. Raises ConfigError where it is missing."""
    if settings.engine == "scripted":
        return None
    if not settings.models:
        return find_demo_model()
    return _existing_file("MODEL", settings.models[0])


def build_engine(settings: Settings, file: Path | None) -> WorkerEngine:
    if file is None:
        return WorkerEngine(scripted_spec(settings), max_step=settings.step_timeout)
    spec = llama_spec(settings, file)
    fallback = msgspec.structs.replace(spec, use_extra_buffers=False)
    return WorkerEngine(spec, fallback, max_step=settings.step_timeout)


def llama_spec(settings: Settings, file: Path) -> LlamaSpec:
    """Raises ConfigError where another file than the model's is missing."""
    return LlamaSpec(
        path=str(file),
        context_length=settings.ctx,
        num_slots=settings.slots,
        num_threads=settings.threads,
        token_budget=settings.token_budget,
        cache_type_k=settings.cache_type_k,
        cache_type_v=settings.cache_type_v,
        prefix_cache=None if settings.prefix_cache is None else int(settings.prefix_cache),
        speculation=settings.speculation,
        draft=None if settings.draft is None else str(_existing_file("--draft", settings.draft)),
        mmproj=None if settings.mmproj is None else str(_existing_file("--mmproj", settings.mmproj)),
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


def _existing_file(option: str, given: str) -> Path:
    path = Path(given).expanduser().absolute()
    if path.is_dir():
        raise ConfigError(f"{option} {given!r} is a folder; this version serves .gguf files.")
    if not path.is_file():
        raise ConfigError(f"{option} {given!r}: there is no such file.")
    return path
