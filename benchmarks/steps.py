"""The engine's parts without HTTP: how long prefill, a decoding step and its sampling take, by KV cache type.

    python -m benchmarks.steps --cache f16/f16 q8_0/f16 --streams 1 8 32

Every round measures each cache type once, in turn; the table has the medians of the rounds. Nothing else may run.
"""

import argparse
from collections.abc import Sequence as Sequence_
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from octavo.cli.demo import find_demo_model
from octavo.core.request import GenerationRequest
from octavo.core.sampling import SamplingParams
from octavo.engine.batching.runner import ForwardBatch
from octavo.engine.batching.sampler import sample
from octavo.engine.batching.sequence import Sequence
from octavo.engine.runners.llama_cpp import binding
from octavo.engine.runners.llama_cpp.context import LlamaRunner
from octavo.engine.runners.llama_cpp.machine import Machine, choose_threads
from octavo.engine.runners.llama_cpp.model import load_model

PROMPT_TOKENS = 104
NUM_STEPS = 16
CONTEXT_LENGTH = 512
MAX_BATCH_TOKENS = 512
PROMPTS_PER_BATCH = MAX_BATCH_TOKENS // PROMPT_TOKENS
SAMPLING = SamplingParams(temperature=0.8, top_p=0.95)


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds: of the whole prefill, of a decoding step, of its sampling."""

    prefill: float
    decode: float
    sampling: float


def measure(path: Path, cache: str, num_streams: int) -> Times:
    keys, values = cache.split("/")
    threads = choose_threads(Machine.detect())
    settings = binding.ContextSettings(CONTEXT_LENGTH, num_streams, threads, MAX_BATCH_TOKENS, keys, values)
    runner = LlamaRunner.create(load_model(path, use_extra_buffers=True, on_progress=lambda _: None), settings)
    try:
        sequences = random_sequences(num_streams, runner.limits.vocabulary_size)
        started = perf_counter()
        for first in range(0, num_streams, PROMPTS_PER_BATCH):
            slots = range(first, min(first + PROMPTS_PER_BATCH, num_streams))
            runner.forward(ForwardBatch.build((slot, 0, sequences[slot].tokens, 1) for slot in slots))
        prefill = perf_counter() - started
        for sequence in sequences:
            sequence.append(int(sequence.tokens[0]))
        steps = [step(runner, sequences) for _ in range(NUM_STEPS)]
        return Times(prefill, median(decode for decode, _ in steps), median(sampling for _, sampling in steps))
    finally:
        runner.close()


def random_sequences(number: int, vocabulary_size: int) -> list[Sequence]:
    prompts = np.random.default_rng(0).integers(100, vocabulary_size, (number, PROMPT_TOKENS)).tolist()
    requests = [GenerationRequest(str(i), tuple(prompt), CONTEXT_LENGTH, SAMPLING) for i, prompt in enumerate(prompts)]
    return [Sequence(request, CONTEXT_LENGTH) for request in requests]


def step(runner: LlamaRunner, sequences: Sequence_[Sequence]) -> tuple[float, float]:
    """Seconds of the forward call and of the sampling."""
    started = perf_counter()
    spans = ((slot, each.num_tokens - 1, each.tokens[-1:], 1) for slot, each in enumerate(sequences))
    logits = runner.forward(ForwardBatch.build(spans))
    decoded = perf_counter()
    tokens = sample(logits, sequences)
    sampled = perf_counter()
    for sequence, token in zip(sequences, tokens.tolist(), strict=True):
        sequence.append(token)
    return decoded - started, sampled - decoded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a .gguf file (default: the demo model)")
    parser.add_argument("--cache", nargs="+", default=["f16/f16", "bf16/bf16", "q8_0/f16"], metavar="KEYS/VALUES")
    parser.add_argument("--streams", nargs="+", type=int, default=[1, 8, 32])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    binding.initialize()
    path = options.model or find_demo_model()
    print("| streams | cache | prefill tokens/s | decode tokens/s | step ms | sampling ms | sampling, share |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for streams in options.streams:
        rounds = [[measure(path, cache, streams) for cache in options.cache] for _ in range(options.rounds)]
        for cache, times in zip(options.cache, zip(*rounds, strict=True), strict=True):
            print(row(streams, cache, times), flush=True)


def row(streams: int, cache: str, rounds: Sequence_[Times]) -> str:
    prefill = median(times.prefill for times in rounds)
    decode, sampling = median(times.decode for times in rounds), median(times.sampling for times in rounds)
    rates = f"{streams * PROMPT_TOKENS / prefill:.0f} | {streams / decode:.0f}"
    share = sampling / (decode + sampling)
    return f"| {streams} | {cache} | {rates} | {1000 * decode:.1f} | {1000 * sampling:.1f} | {share:.1%} |"


if __name__ == "__main__":
    main()
