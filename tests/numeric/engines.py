"""The real engine with few threads and slots, and what it says of a request."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import msgspec

from octavo.core.output import FinishReason, TokenLogprob
from octavo.core.request import GenerationRequest, LogprobParams
from octavo.core.sampling import SamplingParams
from octavo.engine.base import Engine
from octavo.engine.specs import LlamaSpec
from octavo.engine.worker import WorkerEngine
from support.workers import running_worker

NUM_THREADS = 1
"""More would wait for each other at every operation of a small model, and long where processors are busy."""
NUM_SLOTS = 4
GREEDY = SamplingParams(temperature=0.0)
NUM_TOP = 8
_ids = count()


@dataclass(frozen=True, slots=True)
class Answer:
    """All that an engine said of a request, joined."""

    tokens: tuple[int, ...]
    logprobs: tuple[TokenLogprob, ...]
    prompt_logprobs: tuple[TokenLogprob, ...]
    num_cached: int
    finish_reason: FinishReason | None


@asynccontextmanager
async def running(path: Path, **fields: object) -> AsyncIterator[WorkerEngine]:
    """An engine in a process of its own, ready. fields: of its spec."""
    small = LlamaSpec(str(path), context_length=256, num_slots=NUM_SLOTS, num_threads=NUM_THREADS)
    spec = msgspec.structs.replace(small, **fields)
    async with running_worker(spec) as engine:
        yield engine


def scored(
    prompt: tuple[int, ...], max_tokens: int = 0, sampling: SamplingParams = GREEDY, *, num_top: int = NUM_TOP
) -> GenerationRequest:
    """A request for the log-probabilities of everything, which no token ends early."""
    logprobs = LogprobParams(of_output=True, of_prompt=True, num_top=num_top)
    return GenerationRequest(f"{next(_ids)}", prompt, max_tokens, sampling, ignore_eos=True, logprobs=logprobs)


async def answer(engine: Engine, request: GenerationRequest) -> Answer:
    async with aclosing(engine.generate(request)) as stream:
        chunks = [chunk async for chunk in stream]
    return Answer(
        tuple(token for chunk in chunks for token in chunk.tokens),
        tuple(logprob for chunk in chunks for logprob in chunk.logprobs),
        tuple(logprob for chunk in chunks for logprob in chunk.prompt_logprobs),
        sum(chunk.num_cached for chunk in chunks),
        chunks[-1].finish_reason,
    )
