"""The best of several candidates."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from service_builders import PuppetEngine, job_of, start, turns

from octavo.core.limits import Limits
from octavo.core.output import FinishReason, LogprobEntry, TextEvent
from octavo.engine.scripted import ScriptedEngine
from octavo.engine.specs import ScriptedSpec
from octavo.errors import EngineError
from octavo.service import GenerationService
from octavo.service.best_of import BestOf
from octavo.telemetry.metrics import Metrics

STOP, LENGTH, CANCELLED = FinishReason.STOP, FinishReason.LENGTH, FinishReason.CANCELLED


@dataclass(frozen=True)
class Case:
    """n of best_of; events: of all candidates, in an order in which they might come."""

    n: int
    best_of: int
    num_prompts: int
    events: Sequence[TextEvent]

    def of(self, index: int) -> list[TextEvent]:
        return [event for event in self.events if event.index == index]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    best_of = draw(st.integers(1, 5))
    num_prompts = draw(st.integers(1, 3))
    indexes = range(num_prompts * best_of)
    order = draw(st.permutations([index for index in indexes for _ in range(draw(st.integers(1, 3)))]))
    events = [
        TextEvent(
            index,
            text=draw(st.text("abc", max_size=2)),
            num_tokens=num_tokens,
            finish_reason=draw(st.sampled_from([STOP, LENGTH])) if index not in order[place + 1 :] else None,
            reasoning=draw(st.text("xyz", max_size=1)),
            entries=(LogprobEntry(str(place), None, -1.0),) * draw(st.integers(0, 2)),
            num_cached=0 if index in order[:place] else draw(st.integers(0, 9)),
            # quarters: their sums are exact
            logprob_sum=-draw(st.integers(0, 8)) / 4 if num_tokens else 0.0,
        )
        for place, index in enumerate(order)
        for num_tokens in [draw(st.integers(0, 3))]
    ]
    return Case(draw(st.integers(1, best_of)), best_of, num_prompts, events)


def pushed(case: Case) -> list[TextEvent]:
    best = BestOf(n=case.n, best_of=case.best_of)
    return [chosen for event in case.events for chosen in best.push(event)]


def reference_ranking(case: Case, prompt_index: int) -> list[list[TextEvent]]:
    """The prompt's candidates, best first: by selection, with exact means."""

    def mean(events: list[TextEvent]) -> Fraction:
        num_tokens = sum(event.num_tokens for event in events)
        return (
            sum((Fraction(event.logprob_sum) for event in events), Fraction()) / num_tokens if num_tokens else -(10**9)
        )

    left = [case.of(prompt_index * case.best_of + sample) for sample in range(case.best_of)]
    ranked = []
    while left:
        best = next(each for each in left if all(mean(each) >= mean(other) for other in left))
        left.remove(best)
        ranked.append(best)
    return ranked


@given(cases())
def test_the_best_candidates_of_each_prompt_come_best_first_with_all_that_they_said(case: Case) -> None:
    answers = {answer.index: answer for answer in pushed(case)}
    assert sorted(answers) == [*range(case.num_prompts * case.n)]
    for prompt_index in range(case.num_prompts):
        for rank, events in enumerate(reference_ranking(case, prompt_index)[: case.n]):
            answer = answers[prompt_index * case.n + rank]
            assert answer.text == "".join(event.text for event in events)
            assert answer.reasoning == "".join(event.reasoning for event in events)
            assert answer.entries == tuple(chain.from_iterable(event.entries for event in events))
            assert answer.finish_reason == events[-1].finish_reason
            assert answer.logprob_sum == sum(event.logprob_sum for event in events)


@given(cases())
def test_every_token_is_counted_once_and_those_of_candidates_left_out_with_the_best(case: Case) -> None:
    answers = {answer.index: answer for answer in pushed(case)}
    for prompt_index in range(case.num_prompts):
        ranked = [sum(event.num_tokens for event in events) for events in reference_ranking(case, prompt_index)]
        counted = [answers[prompt_index * case.n + rank].num_tokens for rank in range(case.n)]
        assert counted == [ranked[0] + sum(ranked[case.n :]), *ranked[1 : case.n]]


@given(cases())
def test_a_prompts_cached_tokens_are_those_of_the_candidate_that_found_the_fewest(case: Case) -> None:
    for answer in pushed(case):
        first = answer.index // case.n * case.best_of
        found = [sum(event.num_cached for event in case.of(first + sample)) for sample in range(case.best_of)]
        assert answer.num_cached == min(found)


@given(cases())
def test_a_prompts_answers_come_with_the_end_of_its_last_candidate_and_not_before(case: Case) -> None:
    best = BestOf(n=case.n, best_of=case.best_of)
    for place, event in enumerate(case.events):
        prompt_index = event.index // case.best_of
        is_last = all(later.index // case.best_of != prompt_index for later in case.events[place + 1 :])
        indexes = [answer.index for answer in best.push(event)]
        assert indexes == ([*range(prompt_index * case.n, (prompt_index + 1) * case.n)] if is_last else [])


def test_a_candidate_without_tokens_is_worse_than_any_other() -> None:
    best = BestOf(n=2, best_of=2)
    best.push(TextEvent(0, "", 0, CANCELLED))
    answers = best.push(TextEvent(1, "unlikely", 1, LENGTH, logprob_sum=-9999.0))
    assert [answer.text for answer in answers] == ["unlikely", ""]


@pytest.fixture
def service() -> GenerationService:
    return GenerationService(Metrics(CollectorRegistry()), Limits())


async def test_a_service_gives_out_the_best_of_what_the_engine_generates(service: GenerationService) -> None:
    engine = PuppetEngine()
    task = await start(service, job_of(engine, 3, n=2, num_prompts=2))
    scores = {"r0": (-3.0, -2.0), "r1": (-0.5, -1.0), "r2": (-1.0, -1.0), "r3": (-1.0,), "r4": (-2.0,), "r5": (-0.5,)}
    for request_id, logprobs in scores.items():
        engine.send(request_id, request_id[:1] * (len(logprobs) - 1), logprobs=logprobs[:-1])
        engine.send(request_id, request_id[1:], LENGTH, logprobs=logprobs[-1:])
    answers = await task
    assert [(answer.index, answer.text) for answer in answers] == [(0, "r1"), (1, "r2"), (2, "5"), (3, "3")]
    assert sum(answer.num_tokens for answer in answers) == 9


async def test_candidates_of_which_all_are_asked_for_come_as_they_are_generated(service: GenerationService) -> None:
    engine = PuppetEngine()
    events = service.stream(job_of(engine, 2))
    engine.send("r1", "x")
    assert await anext(events) == TextEvent(1, "x", 1)
    await events.aclose()


async def test_equally_good_candidates_of_a_real_stream_keep_their_order_and_all_are_counted(
    service: GenerationService,
) -> None:
    engine = ScriptedEngine(ScriptedSpec(text="The fox.", num_slots=2))
    answers = await (await start(service, job_of(engine, 4, n=2, num_prompts=2)))
    assert [answer.index for answer in answers if answer.index < 2] == [0, 1]
    assert {answer.text for answer in answers} == {"The fox."}
    one = await (await start(service, job_of(engine)))
    assert sum(answer.num_tokens for answer in answers) == 8 * sum(event.num_tokens for event in one)


async def test_candidates_that_the_server_ends_are_ranked_by_what_they_have(service: GenerationService) -> None:
    engine = PuppetEngine(num_slots=2)
    task = await start(service, job_of(engine, 3, n=2))
    engine.send("r0", "a", logprobs=[-2.0])
    engine.send("r1", "b", logprobs=[-1.0])
    await turns(5)
    service.cancel_all()
    assert [(answer.text, answer.finish_reason) for answer in await task] == [("b", CANCELLED), ("a", CANCELLED)]


async def test_closing_the_stream_closes_every_candidate_before_it_returns(service: GenerationService) -> None:
    engine = PuppetEngine()
    events = service.stream(job_of(engine, 2, n=1, num_prompts=2))
    for request_id in ("r0", "r1"):
        engine.send(request_id, request_id[1:], LENGTH, logprobs=[-1.0])
    assert (await anext(events)).text == "0"
    await events.aclose()
    assert sorted(engine.closed) == ["r0", "r1", "r2", "r3"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_an_error_of_a_candidate_is_one_of_the_job(service: GenerationService) -> None:
    engine = PuppetEngine()
    task = await start(service, job_of(engine, 3, n=1))
    engine.send("r0", "a", LENGTH, logprobs=[-1.0])
    engine.fail("r2", EngineError("broken"))
    with pytest.raises(EngineError, match="broken"):
        await task
    assert len(engine.closed) == 3
