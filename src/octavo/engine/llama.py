"""The llama engine: the batching engine over llama.cpp, with what a spec leaves open chosen for this machine."""

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from pathlib import Path

import msgspec

from octavo.engine.base import EngineInfo
from octavo.engine.batching.composer import Composer, LoneSteps, MixedSteps
from octavo.engine.batching.drafts import PromptLookup
from octavo.engine.batching.engine import BatchingEngine
from octavo.engine.batching.runner import LONE_CHUNK
from octavo.engine.batching.speculation import NO_DRAFTING, Speculation
from octavo.engine.batching.step_costs import MeasuredSteps
from octavo.engine.runners.llama_cpp import binding, machine
from octavo.engine.runners.llama_cpp.binding import ContextSettings
from octavo.engine.runners.llama_cpp.context import LlamaRunner
from octavo.engine.runners.llama_cpp.machine import CacheTypes, Machine
from octavo.engine.runners.llama_cpp.model import LlamaTokenizer, check_file, load_model
from octavo.engine.specs import LlamaSpec
from octavo.engine.stopwatch import Stopwatch
from octavo.errors import ModelLoadError


def load_llama(spec: LlamaSpec, on_progress: Callable[[float], None]) -> BatchingEngine:
    """Load, choose, and test with a real decode. Raises ModelLoadError and RunnerFailed."""
    watch, path, here = Stopwatch(), Path(spec.path), Machine.detect()
    binding.initialize()
    check_file(path)
    beside = ThreadPoolExecutor(1)
    try:
        digest = beside.submit(_digest, path)  # reading the file once more takes as long as loading it
        model = load_model(path, use_extra_buffers=spec.use_extra_buffers, on_progress=on_progress)
        watch.lap("weights")
        tokenizer = beside.submit(LlamaTokenizer, model)
        runner, settings, cache = _create_runner(spec, here, model)
        watch.lap("KV cache")
        runner.self_test()
        watch.lap("self-test")
        spec = _without_the_impossible(spec, runner)
        composer = _create_composer(spec, runner)
        watch.lap("costs of steps")
        fingerprint = _fingerprint(digest.result(), spec, settings)
        watch.lap("rest of digest and vocabulary")
    finally:
        beside.shutdown(wait=False, cancel_futures=True)  # who cannot be served is told so at once
    max_saved = _max_saved(spec, here, cache, model)
    info = EngineInfo(
        context_length=runner.limits.context_length,
        num_slots=settings.num_slots,
        chat_template=model.chat_template,
        fingerprint=fingerprint,
        description=(*_describe(spec, here, cache, settings, model, max_saved), f"loaded in: {watch}"),
    )
    return BatchingEngine(runner, composer, tokenizer.result(), info, max_saved=max_saved)


def _without_the_impossible(spec: LlamaSpec, runner: LlamaRunner) -> LlamaSpec:
    """Where no part of a slot's tokens can be kept, prefixes cannot be cached nor guesses taken back."""
    return spec if runner.limits.can_share else msgspec.structs.replace(spec, prefix_cache=0, speculation=False)


def _create_composer(spec: LlamaSpec, runner: LlamaRunner) -> Composer:
    """Where numbers must have the same bits, nothing depends on a clock, not even the number of threads."""
    if spec.deterministic:
        return LoneSteps(runner.limits)
    costs = MeasuredSteps.measure(runner)
    runner.govern_threads(copy(costs))  # as they are on this machine with nothing learned from others' work
    return MixedSteps(runner.limits, costs, Speculation(PromptLookup(), costs) if spec.speculation else NO_DRAFTING)


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


def _max_saved(spec: LlamaSpec, here: Machine, cache: CacheTypes, model: binding.Model) -> int:
    """Tokens whose keys and values may be kept in the host's memory; none where the size of a token's is not known."""
    budget = machine.choose_prefix_cache(here) if spec.prefix_cache is None else spec.prefix_cache
    bytes_per_token = cache.bytes_per_token(model.cache_width)
    return int(budget / bytes_per_token) if bytes_per_token else 0


def _fingerprint(weights: bytes, spec: LlamaSpec, settings: ContextSettings) -> str:
    """Of what decides the numbers: weights, library, and the settings that change how they are added up."""
    most_at_once = min(settings.max_batch_tokens, LONE_CHUNK) if spec.deterministic else settings.max_batch_tokens
    num_threads = settings.num_threads if spec.deterministic else 0  # otherwise it changes with what else runs
    numeric = replace(settings, context_length=0, num_slots=0, num_threads=num_threads, max_batch_tokens=most_at_once)
    choices = (spec.use_extra_buffers, spec.deterministic)
    text = f"{binding.version()} {binding.system_info()} {numeric} {choices}"
    return f"fp_{hashlib.blake2b(weights + text.encode(), digest_size=8).hexdigest()}"


def _digest(path: Path) -> bytes:
    """Raises ModelLoadError where the file cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, hashlib.blake2b).digest()
    except OSError as error:
        raise ModelLoadError(f"{path.name}: cannot be read ({error.strerror}).") from error


def _describe(
    spec: LlamaSpec,
    here: Machine,
    cache: CacheTypes,
    settings: ContextSettings,
    model: binding.Model,
    max_saved: int,
) -> tuple[str, ...]:
    repacking = "on" if spec.use_extra_buffers else "off: the process died while it loaded the model with it"
    return (
        f"model: {model.description}, trained on {model.trained_context_length} tokens of context",
        f"machine: {here.summary}",
        f"library: llama.cpp {binding.version()}: {binding.system_info()}",
        f"weight repacking: {repacking}",
        f"KV cache: keys {cache.keys}, values {cache.values} ({cache.reason})",
        f"threads: {settings.num_threads} ({'as configured' if spec.num_threads else 'one per processor'})"
        f"{'' if spec.deterministic else ', fewer while others take their processors and fewer are faster'}",
        f"context: {settings.context_length} tokens in each of {settings.num_slots} slots",
        f"token budget: {settings.max_batch_tokens} a step",
        f"prefix cache: {max_saved} tokens in the host's memory beside those in the slots",
        f"speculation: {'on, where it pays' if spec.speculation and not spec.deterministic else 'off'}",
        f"deterministic: {'on, one sequence a step' if spec.deterministic else 'off'}",
    )
