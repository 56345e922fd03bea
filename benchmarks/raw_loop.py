"""A loop of llama_decode and nothing else, with Octavo's settings: what is left for a server around it.

    python -m benchmarks.raw_loop JOB.json

computes the job's prompts (as many as it has streams) and then one token of each a step, the most probable one, and
prints the seconds of both and the rate of the second as JSON. `bench_peers --workloads raw` sets Octavo against it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octavo.engine.batching.runner import ForwardBatch
from octavo.engine.runners.llama_cpp import binding, machine
from octavo.engine.runners.llama_cpp.context import LlamaRunner
from octavo.engine.runners.llama_cpp.machine import Machine
from octavo.engine.runners.llama_cpp.model import load_model
from octavo.engine.specs import LlamaSpec


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds: of all prompts, and of all steps that gave one token of each."""

    prefill: float
    decode: float


def main(job: dict[str, Any]) -> dict[str, float]:
    """Measure the prompts of the job after a round over those of its warm-up."""
    binding.initialize()
    runner = create_runner(Path(job["model"]), job["num_streams"])
    try:
        run_loop(runner, job["warm_up"], num_steps=len(job["warm_up"][0]))
        for slot in range(job["num_streams"]):
            runner.truncate(slot, 0)
        num_steps = job["max_tokens"] - 1  # a prompt's own logits give the first token
        times = run_loop(runner, job["prompts"], num_steps)
    finally:
        runner.close()
    return {
        "wall_seconds": times.prefill + times.decode,
        "completion_tokens": job["max_tokens"] * len(job["prompts"]),
        "joint_tokens_per_second": num_steps * len(job["prompts"]) / times.decode,
    }


def create_runner(path: Path, num_slots: int) -> LlamaRunner:
    """As `octavo serve` does without options, but with no slot to spare."""
    here = Machine.detect()
    model = load_model(path, use_extra_buffers=True, on_progress=lambda _: None)
    cache = machine.preferred_cache_types(here)[0]
    settings = binding.ContextSettings(
        context_length=machine.choose_context_length(model.trained_context_length),
        num_slots=num_slots,
        num_threads=machine.choose_threads(here),
        max_batch_tokens=max(LlamaSpec(str(path)).token_budget, num_slots),
        cache_type_k=cache.keys,
        cache_type_v=cache.values,
    )
    return LlamaRunner.create(model, settings)


def run_loop(runner: LlamaRunner, prompts: Sequence[Sequence[int]], num_steps: int) -> Times:
    """Each prompt in the slot of its number."""
    started = perf_counter()
    tokens = prefill(runner, [np.array(prompt, np.int32) for prompt in prompts])
    filled = perf_counter()
    lengths = [len(prompt) for prompt in prompts]
    for step in range(num_steps):
        tokens = decode(runner, tokens, [length + step for length in lengths])
    return Times(filled - started, perf_counter() - filled)


def prefill(runner: LlamaRunner, prompts: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Whole prompts, as many at a time as a batch holds; the most probable token after each."""
    per_batch = max(1, runner.limits.max_batch_tokens // max(map(len, prompts)))
    bounds = [*range(0, len(prompts), per_batch), len(prompts)]
    batches = [[(slot, 0, prompts[slot], 1) for slot in range(start, end)] for start, end in pairwise(bounds)]
    return np.concatenate([most_probable(runner.forward(ForwardBatch.build(batch))) for batch in batches])


def decode(runner: LlamaRunner, tokens: NDArray[np.int32], positions: Sequence[int]) -> NDArray[np.int32]:
    """One token of every sequence at its position; the most probable token after each."""
    spans = ((slot, position, tokens[slot : slot + 1], 1) for slot, position in enumerate(positions))
    return most_probable(runner.forward(ForwardBatch.build(spans)))


def most_probable(logits: NDArray[np.float32]) -> NDArray[np.int32]:
    """Shape (sequences,) of logits of shape (sequences, vocabulary)."""
    tokens: NDArray[np.int32] = logits.argmax(axis=1).astype(np.int32)
    return tokens


if __name__ == "__main__":
    print(json.dumps(main(json.loads(Path(sys.argv[1]).read_text()))))
