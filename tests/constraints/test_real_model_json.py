"""What a real model writes under the suite's schemas: valid JSON, whatever the model would rather say."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from octavo.cli.demo import find_demo_model
from octavo.constraints import answer_grammar, schema_part
from octavo.core.channels import PLAIN
from octavo.core.output import FinishReason
from octavo.core.request import GenerationRequest
from octavo.core.sampling import SamplingParams
from octavo.engine.base import Engine
from octavo.engine.llama import load_llama
from octavo.engine.specs import LlamaSpec
from support.json_schema_judge import problem, validator
from support.json_schema_suite import SuiteCase
from support.json_schema_verdicts import verdicts
from support.listing import check_none
from support.packages import skipped_if_not_fetched

SAMPLES = 3
NUM_SLOTS = 32
MAX_TOKENS = 64
MORE_TOKENS = 256
"""For an answer that was cut, once."""
PROMPT = "A short example of JSON data, on one line:\n"
UNJUDGED_FILES = ("optional/ecmascript-regex",)
"""Whose regular expressions `jsonschema` reads otherwise or not at all."""


@dataclass(frozen=True, slots=True)
class Answer:
    case: SuiteCase
    text: bytes
    end: FinishReason | None

    @property
    def problem(self) -> str:
        wrong = problem(self.text, validator(self.case.schema))
        return wrong and f"{self.case.name}: {wrong}"


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    spec = LlamaSpec(str(find_demo_model()), context_length=512, num_slots=NUM_SLOTS)
    async with running(spec) as made:
        yield made


@asynccontextmanager
async def running(spec: LlamaSpec) -> AsyncIterator[Engine]:
    made = await asyncio.to_thread(load_llama, spec, lambda fraction: None)
    loop = asyncio.create_task(asyncio.to_thread(made.run))
    try:
        yield made
    finally:
        await made.close()
        await loop


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_real_model_writes_what_is_valid_under_every_accepted_schema_of_the_suite(engine: Engine) -> None:
    with skipped_if_not_fetched():
        found = await asyncio.to_thread(verdicts)
    cases = [each.case for each in found if each.is_accepted and each.case.file not in UNJUDGED_FILES]
    prompt = await engine.tokenizer.encode([PROMPT])
    wanted = [(case, asked(engine, prompt, case, seed)) for case in cases for seed in range(SAMPLES)]
    answers = await all_of(whole_answer(engine, case, request) for case, request in wanted)
    ends = Counter(given.end for given in answers)
    print(f"\n{len(cases)} schemas, {ends[FinishReason.STOP]} answers whole, {ends[FinishReason.LENGTH]} cut")
    assert ends.keys() <= {FinishReason.STOP, FinishReason.LENGTH}
    assert ends[FinishReason.STOP] > ends[FinishReason.LENGTH]
    check_none(given.problem for given in answers if given.end is FinishReason.STOP and given.problem)


async def all_of(answers: Iterable[Awaitable[Answer]]) -> list[Answer]:
    """Few more at a time than there are slots for: each has a compiled grammar."""
    places = asyncio.Semaphore(2 * NUM_SLOTS)

    async def placed(each: Awaitable[Answer]) -> Answer:
        async with places:
            return await each

    return await asyncio.gather(*map(placed, answers))


def asked(engine: Engine, prompt: tuple[int, ...], case: SuiteCase, seed: int) -> GenerationRequest:
    grammar = answer_grammar(schema_part(case.schema), PLAIN, engine.tokenizer.vocabulary)
    sampling = SamplingParams(seed=seed)
    return GenerationRequest(f"{case.name} {seed}", prompt, MAX_TOKENS, sampling, grammar=grammar)


async def whole_answer(engine: Engine, case: SuiteCase, request: GenerationRequest) -> Answer:
    """A second time with more tokens where the first answer is cut."""
    first = await answer(engine, case, request)
    if first.end is FinishReason.STOP:
        return first
    return await answer(engine, case, replace(request, max_tokens=MORE_TOKENS))


async def answer(engine: Engine, case: SuiteCase, request: GenerationRequest) -> Answer:
    async with aclosing(engine.generate(request)) as stream:
        chunks = [chunk async for chunk in stream]
    pieces = engine.tokenizer.vocabulary.pieces
    text = b"".join(pieces[token] for chunk in chunks for token in chunk.tokens)
    return Answer(case, text, chunks[-1].finish_reason)
