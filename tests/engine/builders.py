"""What the engine's tests need, with defaults: requests, sequences, runners, engines."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from itertools import count

import numpy as np
from numpy.typing import NDArray

from octavo.core.images import ImageSpan
from octavo.core.output import FinishReason, TokenChunk
from octavo.core.request import GenerationRequest, LogprobParams
from octavo.core.sampling import SamplingParams
from octavo.engine.base import EngineInfo
from octavo.engine.batching.composer import MixedSteps
from octavo.engine.batching.engine import AdapterTrial, BatchingEngine
from octavo.engine.batching.image_store import ImageStore
from octavo.engine.batching.runner import RunnerLimits
from octavo.engine.batching.sequence import Sequence
from octavo.engine.runners.scripted import NextLogits, ScriptedRunner
from octavo.engine.scripted import ByteTokenizer

VOCABULARY_SIZE = 16
EOG_TOKEN = 0
TURNS = 2000
"""Of an event loop, 10 ms each, until something that should have happened is a failure."""
_ids = count()


def request(
    prompt: tuple[int, ...] = (1, 2, 3),
    max_tokens: int = 4,
    *,
    sampling: SamplingParams | None = None,
    ignore_eos: bool = False,
    stop_tokens: frozenset[int] = frozenset(),
    min_tokens: int = 0,
    logprobs: LogprobParams | None = None,
    adapter: str = "",
    images: tuple[ImageSpan, ...] = (),
    owner: tuple[str, ...] = (),
    id: str | None = None,
) -> GenerationRequest:
    return GenerationRequest(
        id=id if id is not None else f"request-{next(_ids)}",
        prompt_tokens=prompt,
        max_tokens=max_tokens,
        sampling=sampling or SamplingParams(),
        ignore_eos=ignore_eos,
        stop_tokens=stop_tokens,
        min_tokens=min_tokens,
        logprobs=logprobs or LogprobParams(),
        adapter=adapter,
        images=images,
        owner=owner,
    )


def text_request(prompt: str, max_tokens: int = 1000, *, owner: tuple[str, ...] = ()) -> GenerationRequest:
    """For the scripted engine, whose tokens are bytes."""
    return request(tuple(prompt.encode()), max_tokens, owner=owner)


def sequence(
    prompt: tuple[int, ...] = (1, 2, 3),
    output: tuple[int, ...] = (),
    *,
    sampling: SamplingParams | None = None,
    owner: tuple[str, ...] = (),
) -> Sequence:
    """A sequence that has generated `output`."""
    made = Sequence(request(prompt, 100_000, sampling=sampling, owner=owner), context_length=100_000)
    for token in output:
        made.append(token)
    return made


def hashed_logits(seed: int, size: int = VOCABULARY_SIZE) -> NextLogits:
    """A "model": logits that depend on every token so far and on nothing else."""

    def next_logits(tokens: tuple[int, ...]) -> NDArray[np.float32]:
        return np.random.default_rng([seed, *(token % 2**32 for token in tokens)]).normal(0, 2, size).astype(np.float32)

    return next_logits


def runner_limits(
    *,
    num_slots: int = 4,
    context_length: int = 64,
    max_batch_tokens: int = 16,
    max_logits: int = 16,
    can_share: bool = True,
) -> RunnerLimits:
    return RunnerLimits(num_slots, context_length, max_batch_tokens, VOCABULARY_SIZE, max_logits, can_share)


def scripted_runner(
    next_logits: NextLogits | None = None,
    *,
    num_slots: int = 4,
    context_length: int = 64,
    max_batch_tokens: int = 16,
    max_logits: int = 16,
    can_share: bool = True,
    cache_tokens: int | None = None,
) -> ScriptedRunner:
    limits = runner_limits(
        num_slots=num_slots,
        context_length=context_length,
        max_batch_tokens=max_batch_tokens,
        max_logits=max_logits,
        can_share=can_share,
    )
    return ScriptedRunner(limits, next_logits or hashed_logits(0), cache_tokens=cache_tokens)


def batching_engine(
    runner: ScriptedRunner, images: ImageStore | None = None, adapter_trial: AdapterTrial = lambda _: None
) -> BatchingEngine:
    limits = runner.limits
    info = EngineInfo(limits.context_length, limits.num_slots, None, "fp_test", has_vision=images is not None)
    return BatchingEngine(
        runner, MixedSteps(limits), ByteTokenizer([]), info, images=images, adapter_trial=adapter_trial
    )


async def collect(stream: AsyncGenerator[TokenChunk, None]) -> tuple[list[int], FinishReason | None]:
    """All tokens of a stream and its finish reason, which only the last chunk has."""
    chunks = [chunk async for chunk in stream]
    assert all(chunk.finish_reason is None for chunk in chunks[:-1])
    return [token for chunk in chunks for token in chunk.tokens], chunks[-1].finish_reason


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what has no event to wait for, such as another process."""
    for _ in range(TURNS):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen")
