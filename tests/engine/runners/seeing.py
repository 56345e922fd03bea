"""Prompts with pictures for a real engine, and whether what follows is what libmtmd's own helper computes."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count

import msgspec
import numpy as np

from octavo.core.images import ImageSpan
from octavo.core.output import TokenChunk, TokenLogprob
from octavo.core.request import GenerationRequest, LogprobParams
from octavo.core.sampling import SamplingParams
from octavo.engine.base import Engine
from octavo.engine.specs import LlamaSpec
from support.block_pictures import as_image
from support.libmtmd import Libmtmd, Part
from support.tiny_vision import VisionModel
from support.workers import running_worker

NUM_SLOTS = 2
MAX_TOKENS = 6
EXACTLY = 2e-4
"""Nats, between sums of 32-bit floats in another order."""
ROUNDED = 5e-3
"""Nats, where such a difference can be rounded up to one of 16-bit floats: the weights of the tiny-vlm have 16 bits, as
has what they are multiplied with, and llama.cpp looks Gemma's activation up in a table of such numbers."""
TOLERANCE = {"tiny-vlm": ROUNDED, "gemma3": ROUNDED}
_ids = count()


@dataclass(frozen=True, slots=True)
class Family:
    name: str
    files: VisionModel

    @property
    def tolerance(self) -> float:
        return TOLERANCE.get(self.name, EXACTLY)


@dataclass(frozen=True, slots=True)
class Answer:
    """tokens: greedy ones. logprobs: shape (tokens, vocabulary)."""

    tokens: tuple[int, ...]
    logprobs: np.ndarray
    num_cached: int


@asynccontextmanager
async def running(family: Family, **fields: object) -> AsyncIterator[Engine]:
    """fields: of the engine's spec."""
    small = LlamaSpec(
        str(family.files.path),
        mmproj=str(family.files.mmproj),
        context_length=family.files.context_length,
        num_slots=NUM_SLOTS,
        num_threads=1,
        cache_type_k="f32",
        cache_type_v="f32",
    )
    async with running_worker(msgspec.structs.replace(small, **fields)) as engine:
        yield engine


async def assembled(engine: Engine, parts: Sequence[Part]) -> tuple[tuple[int, ...], tuple[ImageSpan, ...]]:
    """The prompt's tokens, with BOS where the model has one, and where its images are."""
    vocabulary = engine.tokenizer.vocabulary
    tokens = [vocabulary.bos_token] if vocabulary.adds_bos else []
    spans: list[ImageSpan] = []
    for part in parts:
        if isinstance(part, str):
            tokens += await engine.tokenizer.encode([part])
        else:
            image = await engine.tokenizer.encode_image(as_image(part))
            spans += [replace(span, start=len(tokens) + span.start) for span in image.spans]
            tokens += image.tokens
    return tuple(tokens), tuple(spans)


async def generate(
    engine: Engine, parts: Sequence[Part], max_tokens: int = MAX_TOKENS, *, of_prompt: bool = False, adapter: str = ""
) -> TokenChunk:
    """A greedy answer, with the whole distribution in the place of each token."""
    tokens, spans = await assembled(engine, parts)
    request = GenerationRequest(
        f"{next(_ids)}",
        tokens,
        max_tokens,
        SamplingParams(temperature=0.0),
        ignore_eos=True,
        logprobs=LogprobParams(of_output=True, of_prompt=of_prompt, num_top=engine.tokenizer.vocabulary.size),
        adapter=adapter,
        images=spans,
    )
    with engine.hold_images([as_image(part) for part in parts if not isinstance(part, str)]):
        async with aclosing(engine.generate(request)) as stream:
            return TokenChunk.joined([chunk async for chunk in stream])


async def answer(engine: Engine, parts: Sequence[Part], max_tokens: int = MAX_TOKENS, *, adapter: str = "") -> Answer:
    whole = await generate(engine, parts, max_tokens, adapter=adapter)
    size = engine.tokenizer.vocabulary.size
    return Answer(whole.tokens, np.array([row_of(each, size) for each in whole.logprobs]), whole.num_cached)


def row_of(logprob: TokenLogprob, size: int) -> np.ndarray:
    row = np.full(size, np.nan)
    for token, value in logprob.top:
        row[token] = value
    return row


def check(libmtmd: Libmtmd, family: Family, parts: Sequence[Part], given: Answer) -> None:
    """The answer is the helper's greedy one, and its distributions are the helper's."""
    expected = libmtmd.logprobs(parts, given.tokens)
    assert np.abs(given.logprobs - expected).max() < family.tolerance
    chosen = expected[np.arange(len(given.tokens)), given.tokens]
    assert (expected.max(axis=-1) - chosen < family.tolerance).all()
