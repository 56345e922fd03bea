"""A job's choices as one stream: admission, order, the client's going away, and errors."""

import asyncio
from collections import defaultdict
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry
from service_builders import PuppetEngine, abandon, job_of, start, turns

from octavo.core.caller import Caller, KeyLimits
from octavo.core.limits import Limits
from octavo.core.output import FinishReason, TextEvent
from octavo.core.request import Choice, GenerationRequest
from octavo.core.sampling import SamplingParams
from octavo.engine.scripted import ScriptedEngine
from octavo.engine.specs import ScriptedSpec
from octavo.errors import EngineError, EngineUnavailable, Overloaded, RateLimited
from octavo.service import GenerationJob, GenerationService, RateLimiter, ServedModel
from octavo.telemetry.metrics import Metrics


@pytest.fixture
def service() -> GenerationService:
    return GenerationService(Metrics(CollectorRegistry()), Limits(max_queue_per_slot=2))


async def test_engine_requests_start_in_the_order_of_the_choices(service: GenerationService) -> None:
    engine = PuppetEngine(num_slots=8)
    task = await start(service, job_of(engine, 5))
    assert engine.opened == ["r0", "r1", "r2", "r3", "r4"]
    await abandon(task)


async def test_events_of_all_choices_come_in_the_order_of_arrival(service: GenerationService) -> None:
    engine = PuppetEngine()
    events = service.stream(job_of(engine, 2))
    engine.send("r1", "x")
    assert await anext(events) == TextEvent(1, "x", 1)
    engine.send("r0", "yz", FinishReason.LENGTH)
    assert await anext(events) == TextEvent(0, "yz", 2, FinishReason.LENGTH)
    engine.send("r1", "", FinishReason.STOP)
    assert [event async for event in events] == [TextEvent(1, "", 0, FinishReason.STOP)]


async def test_a_choice_that_finds_its_stop_string_leaves_the_engine_while_others_go_on(
    service: GenerationService,
) -> None:
    engine = PuppetEngine()
    events = service.stream(job_of(engine, 2, stop=(".",)))
    engine.send("r0", "one. two")
    assert await anext(events) == TextEvent(0, "one", 4, FinishReason.STOP)
    assert engine.closed == ["r0"]
    engine.send("r1", "more")
    assert await anext(events) == TextEvent(1, "more", 4)
    engine.send("r1", ".")
    assert [event async for event in events] == [TextEvent(1, "", 1, FinishReason.STOP)]
    assert engine.closed == ["r0", "r1"]


async def test_closing_the_stream_closes_every_engine_request_within_the_same_await(service: GenerationService) -> None:
    engine = PuppetEngine()
    events = service.stream(job_of(engine, 8))
    engine.send("r3", "x")
    await anext(events)
    await events.aclose()
    assert sorted(engine.closed) == sorted(engine.opened)
    assert len(engine.closed) == 8


async def test_cancelling_the_reader_closes_every_engine_request_before_the_cancellation_goes_on(
    service: GenerationService,
) -> None:
    engine = PuppetEngine()
    task = await start(service, job_of(engine, 3))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(engine.closed) == 3


async def test_an_error_of_one_choice_closes_the_others_and_is_raised(service: GenerationService) -> None:
    engine = PuppetEngine()
    events = service.stream(job_of(engine, 3))
    engine.send("r1", "x")
    engine.fail("r1", EngineError("broken"))
    assert await anext(events) == TextEvent(1, "x", 1)
    with pytest.raises(EngineError, match="broken"):
        await anext(events)
    assert len(engine.closed) == 3


async def test_an_engine_that_ends_without_a_reason_is_an_error_and_not_a_short_answer(
    service: GenerationService,
) -> None:
    engine = PuppetEngine()
    task = await start(service, job_of(engine))
    engine.send("r0", "x")
    engine.end_silently("r0")
    with pytest.raises(EngineError):
        await task


async def test_an_engine_that_is_not_available_is_named_before_the_first_event(service: GenerationService) -> None:
    engine = ScriptedEngine(ScriptedSpec())
    await engine.close()
    with pytest.raises(EngineUnavailable):
        await anext(service.stream(job_of(engine)))


async def test_more_choices_than_slots_all_get_their_whole_answer(service: GenerationService) -> None:
    engine = ScriptedEngine(ScriptedSpec(text="Grüße, 世界 👋", piece_bytes=1, num_slots=4))
    texts: defaultdict[int, str] = defaultdict(str)
    reasons = {}
    async for event in service.stream(job_of(engine, 64)):
        texts[event.index] += event.text
        if event.finish_reason is not None:
            reasons[event.index] = event.finish_reason
    assert texts == dict.fromkeys(range(64), "Grüße, 世界 👋")
    assert reasons == dict.fromkeys(range(64), FinishReason.STOP)


async def test_a_closed_stream_frees_its_slots_and_its_places_in_the_queue(service: GenerationService) -> None:
    engine = ScriptedEngine(ScriptedSpec(num_slots=2))
    events = service.stream(job_of(engine, 5))
    await anext(events)
    assert engine.health().num_running == 2
    await events.aclose()
    assert engine.health().num_running == engine.health().num_waiting == 0
    assert [event.index async for event in service.stream(job_of(engine))][-1] == 0


async def test_a_job_is_refused_when_the_engine_has_a_full_queue(service: GenerationService) -> None:
    engine = PuppetEngine(num_slots=2)
    engine.num_waiting = 4
    with pytest.raises(Overloaded) as refusal:
        await anext(service.stream(job_of(engine)))
    assert engine.opened == []
    assert refusal.value.retry_after == 2
    assert "4" in refusal.value.message


async def test_only_so_many_requests_are_prepared_at_a_time(service: GenerationService) -> None:
    engine = PuppetEngine(num_slots=2)
    model = job_of(engine).model
    async with AsyncExitStack() as preparing:
        for _ in range(4):
            await preparing.enter_async_context(service.preparing(model, ()))
        with pytest.raises(Overloaded, match="4 requests"):
            await preparing.enter_async_context(service.preparing(model, ()))
    engine.num_waiting = 3
    async with service.preparing(model, ()):
        pass
    engine.num_waiting = 4
    with pytest.raises(Overloaded, match="4 sequences wait"):
        await preparing.enter_async_context(service.preparing(model, ()))


async def test_a_job_is_admitted_while_the_queue_has_a_place(service: GenerationService) -> None:
    engine = PuppetEngine(num_slots=2)
    engine.num_waiting = 3
    task = await start(service, job_of(engine))
    assert engine.opened == ["r0"]
    await abandon(task)


async def test_choices_count_as_waiting_before_the_engine_has_seen_them(service: GenerationService) -> None:
    engine = PuppetEngine(num_slots=2)
    tasks = [await start(service, job_of(engine, name=f"j{number}-")) for number in range(6)]
    with pytest.raises(Overloaded):
        await anext(service.stream(job_of(engine)))
    assert len(engine.opened) == 6
    await abandon(*tasks)


async def test_a_large_job_takes_the_slots_one_after_the_other_and_leaves_the_queue_to_others(
    service: GenerationService,
) -> None:
    engine = PuppetEngine(num_slots=2)
    task = await start(service, job_of(engine, 50))
    assert engine.opened == ["r0", "r1"]
    others = [await start(service, job_of(engine, name=f"other{number}-")) for number in range(4)]
    with pytest.raises(Overloaded):
        await anext(service.stream(job_of(engine, name="next")))
    engine.send("r1", "x", FinishReason.LENGTH)
    await turns(20)
    assert engine.opened == ["r0", "r1", *(f"other{number}-0" for number in range(4)), "r2"]
    await abandon(task, *others)


async def test_a_choice_that_ended_gives_its_place_to_others_while_its_job_goes_on(service: GenerationService) -> None:
    engine = PuppetEngine(num_slots=2)
    task = await start(service, job_of(engine, 2))
    others = [await start(service, job_of(engine, name=f"other{number}-")) for number in range(4)]
    with pytest.raises(Overloaded):
        await anext(service.stream(job_of(engine, name="early")))
    engine.send("r0", "x", FinishReason.LENGTH)
    await turns(20)
    others.append(await start(service, job_of(engine, name="late")))
    assert engine.opened[-1] == "late0"
    await abandon(task, *others)


async def test_a_job_that_is_cancelled_as_it_begins_gives_its_places_back(
    service: GenerationService,
) -> None:
    engine = PuppetEngine(num_slots=2)
    for _ in range(3):
        task = asyncio.ensure_future(anext(service.stream(job_of(engine, 6))))
        await turns(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await abandon(await start(service, job_of(engine, name="next")))
    assert engine.opened[-1] == "next0"
    assert sorted(engine.opened) == sorted(engine.closed)


@pytest.mark.parametrize("ending", ["closed", "failed", "finished"])
async def test_every_way_to_end_a_job_gives_all_its_places_back(service: GenerationService, ending: str) -> None:
    engine = PuppetEngine(num_slots=6)
    for number in range(20):
        task = await start(service, job_of(engine, 6, name=f"{number}-"))
        if ending == "closed":
            await abandon(task)
        elif ending == "failed":
            engine.fail(f"{number}-0", EngineError("broken"))
            with pytest.raises(EngineError):
                await task
        else:
            for index in range(6):
                engine.send(f"{number}-{index}", "x", FinishReason.LENGTH)
            assert len(await task) == 6
    assert len(engine.closed) == 120


async def test_models_have_queues_of_their_own(service: GenerationService) -> None:
    full, free = PuppetEngine(num_slots=1), PuppetEngine(num_slots=1)
    job = job_of(free)
    other = replace(job, model=ServedModel("other", free, 0))
    tasks = [await start(service, job_of(full, 3)), await start(service, other)]
    assert free.opened == ["r0"]
    await abandon(*tasks)


async def test_a_reader_that_does_not_read_stops_the_engine_streams(service: GenerationService) -> None:
    engine = ScriptedEngine(ScriptedSpec(text="x" * 10_000, piece_bytes=1, context_length=20_000))
    requests = [GenerationRequest(str(index), (65,), 10_000, SamplingParams(), ignore_eos=True) for index in range(4)]
    choices = tuple(Choice(index, request) for index, request in enumerate(requests))
    events = service.stream(GenerationJob("r", ServedModel("m", engine, 0), choices, 1, n=4, best_of=4))
    await anext(events)
    await turns(30_000)
    assert engine.health().num_running == 4
    await events.aclose()


async def test_tokens_are_charged_to_the_caller_prompts_at_once_and_others_as_they_come() -> None:
    metrics = Metrics(CollectorRegistry())
    limiter = RateLimiter(metrics, clock=lambda: 0.0)
    service = GenerationService(metrics, Limits(), limiter=limiter)
    engine = PuppetEngine()
    caller = Caller("a", limits=KeyLimits(tokens=10))
    events = service.stream(job_of(engine, 2, num_prompts=3, caller=caller))
    engine.send("r1", "four")
    await anext(events)
    assert limiter.states(caller)[0].remaining == 10 - 3 - 4
    await events.aclose()


async def test_a_prompt_for_which_its_key_has_no_tokens_is_refused_and_leaves_its_place() -> None:
    metrics = Metrics(CollectorRegistry())
    limiter = RateLimiter(metrics, clock=lambda: 0.0)
    service = GenerationService(metrics, Limits(max_queue_per_slot=1), limiter=limiter)
    engine = PuppetEngine(num_slots=1)
    caller = Caller("a", limits=KeyLimits(tokens=10))
    limiter.charge(caller, 8)
    for _ in range(5):
        with pytest.raises(RateLimited):
            await anext(service.stream(job_of(engine, num_prompts=3, caller=caller)))
    assert engine.opened == []
