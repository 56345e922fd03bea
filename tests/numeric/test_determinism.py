"""A deterministic engine says the same to the bit, alone or in company, computed anew or found computed."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import numpy as np
import pytest
import pytest_asyncio

from octavo.core.request import GenerationRequest
from octavo.core.sampling import SamplingParams
from octavo.engine.base import Engine

from .engines import NUM_SLOTS, Answer, answer, running, scored
from .tiny_gguf import VOCABULARY_SIZE, TinyModel

pytestmark = pytest.mark.asyncio(loop_scope="module")

HEAD = tuple(np.random.default_rng(20).integers(0, VOCABULARY_SIZE, 140).tolist())
"""Many requests begin with it."""


def asked(number: int) -> GenerationRequest:
    """Some begin alike, some do not; greedy and drawn ones, short and long."""
    own = tuple(np.random.default_rng(number).integers(0, VOCABULARY_SIZE, 5 + 9 * number).tolist())
    head = HEAD[: 70 * (number % 3)]
    return scored((*head, *own), 10 + number, SamplingParams(temperature=number % 4 / 2, seed=number))


def bits(given: Answer) -> Answer:
    """Without what may differ: how much was found computed."""
    return replace(given, num_cached=0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(tiny: TinyModel) -> AsyncIterator[Engine]:
    async with running(tiny.path, deterministic=True) as engine:
        yield engine


async def test_answers_and_logprobs_are_the_same_bits_alone_in_company_and_from_the_cache(engine: Engine) -> None:
    numbers = range(2 * NUM_SLOTS)
    alone = [await answer(engine, asked(number)) for number in numbers]
    in_company = await asyncio.gather(*(answer(engine, asked(number)) for number in reversed(numbers)))
    again = [await answer(engine, replace(asked(number), id=f"again-{number}")) for number in numbers]

    assert [bits(each) for each in reversed(in_company)] == [bits(each) for each in alone]
    assert [bits(each) for each in again] == [bits(each) for each in alone]


async def test_a_prompt_found_computed_gives_the_same_bits(engine: Engine) -> None:
    def unscored(number: int) -> GenerationRequest:
        request = asked(number)
        return replace(request, logprobs=replace(request.logprobs, of_prompt=False))

    first = [await answer(engine, unscored(number)) for number in range(NUM_SLOTS)]
    second = [await answer(engine, unscored(number)) for number in range(NUM_SLOTS)]
    assert any(each.num_cached for each in second)
    assert [bits(each) for each in second] == [bits(each) for each in first]
