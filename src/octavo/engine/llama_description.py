"""What was chosen for a model on a machine and why, in words."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from octavo.engine.runners.llama_cpp import binding
from octavo.engine.runners.llama_cpp.binding import ContextSettings
from octavo.engine.runners.llama_cpp.machine import CacheTypes, Machine
from octavo.engine.runners.llama_cpp.thread_choice import ThreadChoice
from octavo.engine.runners.llama_cpp.waiting import describe_waiting
from octavo.engine.specs import LlamaSpec


@dataclass(frozen=True, slots=True)
class Choices:
    """spec: what was asked for. max_saved: tokens of the prefix cache beside the slots. draft: the draft model."""

    spec: LlamaSpec
    here: Machine
    model: binding.Model
    cache: CacheTypes
    settings: ContextSettings
    max_saved: int
    threads: ThreadChoice
    draft: binding.Model | None


def describe(choices: Choices) -> tuple[str, ...]:
    """One "name: value" a line."""
    return tuple(_lines(choices))


def _lines(choices: Choices) -> Iterator[str]:
    spec, model, cache, settings = choices.spec, choices.model, choices.cache, choices.settings
    repacking = "on" if spec.use_extra_buffers else "off: the process died while it loaded the model with it"
    yield f"model: {model.description}, trained on {model.trained_context_length} tokens of context"
    yield f"machine: {choices.here.summary}"
    yield f"library: llama.cpp {binding.version()}: {binding.system_info()}"
    yield f"weight repacking: {repacking}"
    yield f"KV cache: keys {cache.keys}, values {cache.values} ({cache.reason})"
    yield from _thread_lines(spec, choices.threads)
    yield f"context: {settings.context_length} tokens in each of {settings.num_slots} slots"
    yield f"token budget: {settings.max_batch_tokens} a step"
    yield f"prefix cache: {choices.max_saved} tokens in the host's memory beside those in the slots"
    yield f"speculation: {'on, where it pays' if spec.speculation and not spec.deterministic else 'off'}"
    yield f"draft model: {_draft(spec, choices.draft)}"
    yield f"images: {'not seen' if spec.mmproj is None else f'seen with {Path(spec.mmproj).name}'}"
    yield f"deterministic: {'on, one sequence a step' if spec.deterministic else 'off'}"


def _draft(spec: LlamaSpec, draft: binding.Model | None) -> str:
    if draft is not None:
        return f"{draft.description}, heard where it pays"
    if spec.draft is None:
        return "none"
    reason = "with --deterministic" if spec.deterministic else "for this kind of model"
    return f"not loaded: nothing is drafted {reason}"


def _thread_lines(spec: LlamaSpec, threads: ThreadChoice) -> Iterator[str]:
    neighbours = "a thread less while others take processor time from the threads, where that is faster"
    server = "no processor of its own; the engine counts it as a neighbour"
    yield f"threads: {threads.summary}"
    yield f"waiting: {describe_waiting(os.environ, binding.system_info())}"
    yield f"neighbours: {'as many threads whatever else runs' if spec.deterministic else neighbours}"
    yield f"API process: {'no processor of its own' if spec.deterministic else server}"
