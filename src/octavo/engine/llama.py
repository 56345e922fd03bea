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
from octavo.engine.batching.draft_model import DraftModel
from octavo.engine.batching.drafts import ForcedTokens, PromptLookup
from octavo.engine.batching.engine import BatchingEngine
from octavo.engine.batching.image_store import ImageStore
from octavo.engine.batching.runner import LONE_CHUNK
from octavo.engine.batching.speculation import Speculation
from octavo.engine.batching.step_costs import MeasuredSteps
from octavo.engine.llama_description import Choices, describe
from octavo.engine.runners.llama_cpp import binding, machine
from octavo.engine.runners.llama_cpp.adapter_trial import try_adapter
from octavo.engine.runners.llama_cpp.binding import ContextSettings
from octavo.engine.runners.llama_cpp.context import LlamaRunner
from octavo.engine.runners.llama_cpp.images import LlamaVision
from octavo.engine.runners.llama_cpp.machine import CacheTypes, Machine
from octavo.engine.runners.llama_cpp.model import LlamaTokenizer, check_file, load_model
from octavo.engine.runners.llama_cpp.thread_choice import ThreadChoice
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
        files = [path] if spec.mmproj is None else [path, Path(spec.mmproj)]
        digests = beside.map(_digest, files)  # reading the file once more takes as long as loading it
        model = load_model(path, use_extra_buffers=spec.use_extra_buffers, on_progress=on_progress)
        draft = _load_draft(spec, model)
        watch.lap("weights")
        tokenizer = beside.submit(LlamaTokenizer, model)
        runner, settings, cache = _create_runner(spec, here, model, draft)
        watch.lap("KV cache")
        runner.self_test()
        watch.lap("self-test")
        threads = _choose_threads(spec, here, runner)
        watch.lap("threads")
        spec = _without_the_impossible(spec, runner)
        draft_model = _create_draft_model(spec, here, draft, settings, threads) if draft is not None else None
        composer = _create_composer(spec, runner, draft_model, threads)
        watch.lap("costs of steps")
        vision = _create_vision(spec, model, threads, settings)
        watch.lap("vision")
        fingerprint = _fingerprint(b"".join(digests), spec, settings)
        watch.lap("rest of digest and vocabulary")
    finally:
        beside.shutdown(wait=False, cancel_futures=True)  # who cannot be served is told so at once
    max_saved = _max_saved(spec, here, cache, model)
    info = EngineInfo(
        context_length=runner.limits.context_length,
        num_slots=settings.num_slots,
        chat_template=model.chat_template,
        fingerprint=fingerprint,
        description=(
            *describe(Choices(spec, here, model, cache, settings, max_saved, threads, draft)),
            f"loaded in: {watch}",
        ),
        has_vision=vision is not None,
    )
    return BatchingEngine(
        runner,
        composer,
        tokenizer.result(),
        info,
        max_saved=max_saved,
        images=ImageStore(vision) if vision is not None else None,
        adapter_trial=lambda adapter: try_adapter(path, Path(adapter.path)),
    )


def _without_the_impossible(spec: LlamaSpec, runner: LlamaRunner) -> LlamaSpec:
    """Where no part of a slot's tokens can be kept, prefixes cannot be cached nor guesses taken back."""
    return spec if runner.limits.can_share else msgspec.structs.replace(spec, prefix_cache=0, speculation=False)


def _create_vision(
    spec: LlamaSpec, model: binding.Model, threads: ThreadChoice, settings: ContextSettings
) -> LlamaVision | None:
    """Raises ModelLoadError."""
    if spec.mmproj is None:
        return None
    check_file(Path(spec.mmproj))
    return LlamaVision(Path(spec.mmproj), model, num_threads=threads.num_threads, max_whole=settings.max_batch_tokens)


def _choose_threads(spec: LlamaSpec, here: Machine, runner: LlamaRunner) -> ThreadChoice:
    """Measured, unless they are given or numbers must have the same bits at each start."""
    if spec.num_threads:
        return ThreadChoice.fixed(spec.num_threads, "as configured")
    if spec.deterministic:
        return ThreadChoice.fixed(machine.choose_threads(here), "one per processor")
    return runner.choose_threads(here.thread_candidates)


def _load_draft(spec: LlamaSpec, model: binding.Model) -> binding.Model | None:
    """What drafts for the model, where something is to and may. Raises ModelLoadError where it cannot."""
    if spec.draft is None or not spec.speculation or spec.deterministic or not model.has_attention_only:
        return None
    path = Path(spec.draft)
    draft = load_model(path, use_extra_buffers=spec.use_extra_buffers, on_progress=lambda fraction: None)
    if not draft.has_attention_only:
        raise ModelLoadError(f"{path.name}: a model of this kind cannot take drafts back, so it cannot draft.")
    _check_vocabulary(path.name, draft, model)
    return draft


def _check_vocabulary(name: str, draft: binding.Model, model: binding.Model) -> None:
    needed = f"{name}: a draft model needs the vocabulary of the model that it drafts for"
    size = model.vocabulary_size
    if draft.vocabulary_size != size:
        raise ModelLoadError(f"{needed}; it has {draft.vocabulary_size} tokens, not {size}.")
    pieces = (each.pieces(range(size), as_special=True) for each in (draft, model))
    for token, (its, wanted) in enumerate(zip(*pieces, strict=True)):
        if its != wanted:
            raise ModelLoadError(f"{needed}; its token {token} is {its!r}, not {wanted!r}.")


def _create_draft_model(
    spec: LlamaSpec, here: Machine, draft: binding.Model, settings: ContextSettings, threads: ThreadChoice
) -> DraftModel:
    """As many slots of the same length as the model has, and as many threads."""
    alike = msgspec.structs.replace(
        spec,
        context_length=settings.context_length,
        num_slots=settings.num_slots,
        num_threads=threads.num_threads,
    )
    runner, _, _ = _create_runner(alike, here, draft, None)
    runner.self_test()
    return DraftModel(runner, _measure(runner, threads))


def _create_composer(
    spec: LlamaSpec, runner: LlamaRunner, draft_model: DraftModel | None, threads: ThreadChoice
) -> Composer:
    """Where numbers must have the same bits, nothing depends on a clock, not even the number of threads."""
    if spec.deterministic:
        return LoneSteps(runner.limits)
    costs = _measure(runner, threads)
    if not spec.speculation:
        return MixedSteps(runner.limits, costs)
    return MixedSteps(runner.limits, costs, Speculation((ForcedTokens(), PromptLookup()), costs, draft_model))


def _measure(runner: LlamaRunner, threads: ThreadChoice) -> MeasuredSteps:
    runner.use_threads(threads.at_first)
    costs = MeasuredSteps.measure(runner)
    runner.govern_threads(threads, copy(costs))  # as they are on this machine with nothing learned from others' work
    return costs


def _create_runner(
    spec: LlamaSpec, here: Machine, model: binding.Model, draft: binding.Model | None
) -> tuple[LlamaRunner, ContextSettings, CacheTypes]:
    """With the first cache types that llama.cpp takes for this model."""
    for cache in (preferred := _cache_types(spec, here)):
        settings = _settings(spec, here, cache, model, draft)
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


def _settings(
    spec: LlamaSpec, here: Machine, cache: CacheTypes, model: binding.Model, draft: binding.Model | None
) -> ContextSettings:
    context_length = spec.context_length or machine.choose_context_length(model.trained_context_length)
    cache_width = model.cache_width + (draft.cache_width if draft is not None else 0)
    bytes_per_slot = context_length * cache.bytes_per_token(cache_width)
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
    return f"fp_{hashlib.blake2b(weights + binding.build_digest() + text.encode(), digest_size=8).hexdigest()}"


def _digest(path: Path) -> bytes:
    """Raises ModelLoadError where the file cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, hashlib.blake2b).digest()
    except OSError as error:
        raise ModelLoadError(f"{path.name}: cannot be read ({error.strerror}).") from error
