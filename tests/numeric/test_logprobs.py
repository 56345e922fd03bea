"""The engine's log-probabilities beside those of the model written out in numpy: the same to 1e-4, however computed."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import numpy as np
import pytest
import pytest_asyncio

from octavo.core.output import FinishReason
from octavo.core.request import LogprobParams
from octavo.core.sampling import SamplingParams
from octavo.engine.base import Engine

from . import forward
from .checks import check_answer
from .engines import NUM_SLOTS, NUM_TOP, answer, running, scored
from .tiny_gguf import NUM_BYTES, VOCABULARY_SIZE, Special, TinyModel

pytestmark = pytest.mark.asyncio(loop_scope="module")

SETTINGS = {
    "a prompt in one step": {"token_budget": 256},
    "a prompt in many steps": {"token_budget": 24},
    "deterministic": {"deterministic": True},
}
MAX_TOKENS = 24


def drawn_prompt(seed: int, length: int) -> tuple[int, ...]:
    """Any tokens, those without text too."""
    return tuple(np.random.default_rng(seed).integers(0, VOCABULARY_SIZE, length).tolist())


LONG = drawn_prompt(1, 200)
PROMPTS = (
    (Special.BOS.id,),
    (Special.BOS.id, 0),
    (Special.BOS.id, *"The quick brown fox → 🦊".encode()),
    drawn_prompt(2, 23),
    drawn_prompt(3, 24),
    drawn_prompt(4, 25),
    drawn_prompt(5, 130),
    LONG,
)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=SETTINGS)
async def engine(request: pytest.FixtureRequest, tiny: TinyModel) -> AsyncIterator[Engine]:
    async with running(tiny.path, cache_type_k="f32", cache_type_v="f32", **SETTINGS[request.param]) as engine:
        yield engine


@pytest.mark.parametrize("prompt", PROMPTS, ids=len)
async def test_a_prompt_that_is_only_scored_has_the_reference_s_logprobs_and_no_new_token(
    engine: Engine, tiny: TinyModel, prompt: tuple[int, ...]
) -> None:
    scores = await answer(engine, scored(prompt))
    assert (scores.tokens, scores.finish_reason) == ((), FinishReason.LENGTH)
    assert {len(each.top) for each in scores.prompt_logprobs} <= {NUM_TOP}
    check_answer(tiny, prompt, scores)


@pytest.mark.parametrize("prompt", PROMPTS, ids=len)
async def test_a_greedy_answer_is_the_reference_s_best_tokens_with_its_logprobs(
    engine: Engine, tiny: TinyModel, prompt: tuple[int, ...]
) -> None:
    greedy = await answer(engine, scored(prompt, MAX_TOKENS))
    reference = forward.logprobs(tiny, (*prompt, *greedy.tokens))[len(prompt) - 1 : -1]
    assert greedy.tokens == tuple(reference.argmax(axis=-1).tolist())
    assert len(greedy.tokens) == MAX_TOKENS
    check_answer(tiny, prompt, greedy)


SAMPLINGS = {
    "plain": SamplingParams(seed=1),
    "hot": SamplingParams(temperature=2.0, seed=2),
    "cold": SamplingParams(temperature=0.3, seed=3),
    "truncated": SamplingParams(top_k=20, min_p=0.02, top_p=0.7, seed=4),
    "penalised": SamplingParams(frequency_penalty=1.5, presence_penalty=-1.0, repetition_penalty=1.7, seed=5),
    "biased": SamplingParams(logit_bias=tuple((token, 7.5) for token in range(97, 123)), seed=6),
    "banned": SamplingParams(logit_bias=tuple((token, -100.0) for token in range(NUM_BYTES // 2)), seed=7),
    "forced": SamplingParams(logit_bias=((ord("x"), 100.0),), seed=8),
    "greedy with penalties": SamplingParams(temperature=0.0, repetition_penalty=2.0, frequency_penalty=2.0),
}


@pytest.mark.parametrize("name", SAMPLINGS)
async def test_however_a_token_is_drawn_its_logprob_is_the_model_s_own(
    engine: Engine, tiny: TinyModel, name: str
) -> None:
    prompt = PROMPTS[2]
    drawn = await answer(engine, scored(prompt, MAX_TOKENS, SAMPLINGS[name]))
    check_answer(tiny, prompt, drawn)
    assert name != "forced" or drawn.tokens == (ord("x"),) * MAX_TOKENS


async def test_twice_as_many_requests_as_slots_have_the_reference_s_logprobs(engine: Engine, tiny: TinyModel) -> None:
    asked = [
        scored(drawn_prompt(seed, 15 + 20 * seed), MAX_TOKENS, SamplingParams(temperature=seed / 4, seed=seed))
        for seed in range(2 * NUM_SLOTS)
    ]
    answers = await asyncio.gather(*(answer(engine, each) for each in asked))
    for each, given in zip(asked, answers, strict=True):
        check_answer(tiny, each.prompt_tokens, given)


@pytest.mark.parametrize("length", [70, 100, 199, 200])
async def test_a_prompt_that_begins_as_one_before_has_the_reference_s_logprobs(
    engine: Engine, tiny: TinyModel, length: int
) -> None:
    await answer(engine, scored(LONG))
    plain = replace(scored((*LONG[:length], *drawn_prompt(9, 30)), MAX_TOKENS), logprobs=LogprobParams(of_output=True))
    continued = await answer(engine, plain)
    whole = replace(continued, prompt_logprobs=(await answer(engine, scored(plain.prompt_tokens))).prompt_logprobs)
    check_answer(tiny, plain.prompt_tokens, whole)
    assert continued.num_cached > 0


async def test_only_what_is_asked_for_is_told(engine: Engine) -> None:
    prompt = PROMPTS[2]
    nothing = await answer(engine, replace(scored(prompt, 3), logprobs=LogprobParams()))
    of_prompt = await answer(engine, replace(scored(prompt, 3), logprobs=LogprobParams(of_prompt=True)))
    of_output = await answer(engine, replace(scored(prompt, 3), logprobs=LogprobParams(of_output=True)))
    told = [(len(each.prompt_logprobs), len(each.logprobs)) for each in (nothing, of_prompt, of_output)]
    assert told == [(0, 0), (len(prompt) - 1, 0), (0, 3)]
    assert not any(each.top for each in (*of_prompt.prompt_logprobs, *of_output.logprobs))
    assert nothing.tokens == of_prompt.tokens == of_output.tokens


async def test_the_top_may_be_the_whole_vocabulary(engine: Engine, tiny: TinyModel) -> None:
    prompt = drawn_prompt(2, 10)
    whole = await answer(engine, scored(prompt, 2, num_top=VOCABULARY_SIZE))
    assert all(sorted(token for token, _ in each.top) == list(range(VOCABULARY_SIZE)) for each in whole.logprobs)
    check_answer(tiny, prompt, whole)
