"""The llama engine: the batching engine over llama.cpp, with what a spec leaves open chosen for this machine."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from octavo.engine.base import EngineInfo
from octavo.engine.batching.engine import BatchingEngine
from octavo.engine.runners.llama_cpp import binding, machine
from octavo.engine.runners.llama_cpp.binding import ContextSettings
from octavo.engine.runners.llama_cpp.context import LlamaRunner
from octavo.engine.runners.llama_cpp.machine import CacheTypes, Machine
from octavo.engine.runners.llama_cpp.model import LlamaTokenizer, load_model
from octavo.engine.specs import LlamaSpec
from octavo.errors import ModelLoadError

FINGERPRINT_SAMPLES = 512
FINGERPRINT_SAMPLE_BYTES = 2**20


def load_llama(spec: LlamaSpec, on_progress: Callable[[float], None]) -> BatchingEngine:
    """Load, choose, and test with a real decode. Raises ModelLoadError and RunnerFailed."""
    binding.initialize()
    path = Path(spec.path)
    model = load_model(path, use_extra_buffers=spec.use_extra_buffers, on_progress=on_progress)
    here = Machine.detect()
    runner, settings, cache = _create_runner(spec, here, model)
    runner.self_test()
    info = EngineInfo(
        context_length=runner.limits.context_length,
        num_slots=settings.num_slots,
        chat_template=model.chat_template,
        fingerprint=_fingerprint(path, settings, uses_extra_buffers=spec.use_extra_buffers),
        description=_describe(spec, here, cache, settings, model),
    )
    return BatchingEngine(runner, LlamaTokenizer(model), info)


def _create_runner(
    spec: LlamaSpec, here: Machine, model: binding.Model
) -> tuple[LlamaRunner, ContextSettings, CacheTypes]:
    """With the first cache types that llama.cpp takes for this model."""
    for cache in (preferred := _cache_types(spec, here)):
        settings = _settings(spec, here, cache, model)
        try:
            return LlamaRunner.create(model, settings), settings, cache
        except ModelLoadError:
            if cache is preferred[-1]:
                raise
    raise AssertionError("there is always a cache type to try")


def _cache_types(spec: LlamaSpec, here: Machine) -> tuple[CacheTypes, ...]:
    preferred = machine.preferred_cache_types(here)
    if spec.cache_type_k is None and spec.cache_type_v is None:
        return preferred
    keys, values = spec.cache_type_k or preferred[0].keys, spec.cache_type_v or preferred[0].values
    for name in (keys, values):
        if name not in binding.GGML_TYPES:
            raise ModelLoadError(f"Unknown cache type {name!r}; known are {', '.join(binding.GGML_TYPES)}.")
    return (CacheTypes(keys, values, "as configured"),)


def _settings(spec: LlamaSpec, here: Machine, cache: CacheTypes, model: binding.Model) -> ContextSettings:
    context_length = spec.context_length or machine.choose_context_length(model.trained_context_length)
    bytes_per_slot = context_length * cache.bytes_per_token(model.cache_width)
    num_slots = spec.num_slots or machine.choose_slots(here, bytes_per_slot=bytes_per_slot)
    if num_slots > binding.MAX_SEQUENCES:
        raise ModelLoadError(f"llama.cpp takes at most {binding.MAX_SEQUENCES} slots, not {num_slots}.")
    return ContextSettings(
        context_length=context_length,
        num_slots=num_slots,
        num_threads=spec.num_threads or machine.choose_threads(here),
        max_batch_tokens=max(spec.token_budget, num_slots),
        cache_type_k=cache.keys,
        cache_type_v=cache.values,
    )


def _fingerprint(path: Path, settings: ContextSettings, *, uses_extra_buffers: bool) -> str:
    """Of what decides the numbers: weights, library, and the settings that change how they are added up.

    Weights are read whole, or by samples spread over the file where that would take seconds.
    """
    numeric = replace(settings, context_length=0, num_slots=0)
    digest = hashlib.blake2b(digest_size=8)
    digest.update(f"{binding.version()} {binding.system_info()} {numeric} {uses_extra_buffers}".encode())
    size = path.stat().st_size
    step = max(size // FINGERPRINT_SAMPLES, FINGERPRINT_SAMPLE_BYTES)
    digest.update(str(size).encode())
    with path.open("rb") as file:
        for start in range(0, size, step):
            file.seek(start)
            digest.update(file.read(FINGERPRINT_SAMPLE_BYTES))
    return f"fp_{digest.hexdigest()}"


def _describe(
    spec: LlamaSpec, here: Machine, cache: CacheTypes, settings: ContextSettings, model: binding.Model
) -> tuple[str, ...]:
    repacking = "on" if spec.use_extra_buffers else "off: the process died while it loaded the model with it"
    return (
        f"model: {model.description}, trained on {model.trained_context_length} tokens of context",
        f"machine: {here.summary}",
        f"library: llama.cpp {binding.version()}: {binding.system_info()}",
        f"weight repacking: {repacking}",
        f"KV cache: keys {cache.keys}, values {cache.values} ({cache.reason})",
        f"threads: {settings.num_threads} ({'as configured' if spec.num_threads else 'one per processor'})",
        f"context: {settings.context_length} tokens in each of {settings.num_slots} slots",
        f"token budget: {settings.max_batch_tokens} a step",
    )
