"""What the metrics are told of a job."""

from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry
from service_builders import PuppetEngine, job_of, start

from octavo.core.caller import Caller
from octavo.core.limits import Limits
from octavo.core.output import FinishReason
from octavo.errors import EngineError, Overloaded
from octavo.service import GenerationService, JobProgress, meter
from octavo.telemetry.metrics import Metrics
from octavo.telemetry.user_hash import user_hash


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def service(registry: CollectorRegistry) -> GenerationService:
    return GenerationService(Metrics(registry), Limits(max_queue_per_slot=2))


async def test_the_metrics_count_a_shared_prompt_once_and_the_tokens_of_every_choice(
    service: GenerationService, registry: CollectorRegistry
) -> None:
    engine = PuppetEngine()
    task = await start(service, job_of(engine, 2))
    engine.send("r0", "abc")
    engine.send("r0", "d", FinishReason.LENGTH)
    engine.send("r1", "e", FinishReason.LENGTH)
    await task
    assert registry.get_sample_value("octavo_prompt_tokens_total", {"model": "m"}) == 1
    assert registry.get_sample_value("octavo_generation_tokens_total", {"model": "m"}) == 5
    assert registry.get_sample_value("octavo_time_to_first_token_seconds_count", {"model": "m"}) == 1
    assert registry.get_sample_value("octavo_time_per_output_token_seconds_count", {"model": "m"}) == 1


async def test_the_metrics_of_a_cancelled_job_hold_what_was_generated(
    service: GenerationService, registry: CollectorRegistry
) -> None:
    engine = PuppetEngine()
    events = service.stream(job_of(engine))
    for text in ("a", "b"):
        engine.send("r0", text)
        await anext(events)
    await events.aclose()
    assert registry.get_sample_value("octavo_generation_tokens_total", {"model": "m"}) == 2
    assert registry.get_sample_value("octavo_time_per_output_token_seconds_count", {"model": "m"}) == 1


async def test_the_time_per_token_is_that_of_the_tokens_behind_the_first_chunk(
    service: GenerationService, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(meter, "perf_counter", lambda: now)
    engine = PuppetEngine()
    events = service.stream(job_of(engine))
    for now, text in ((1.0, "abcde"), (2.0, "fg"), (3.0, "hi")):  # noqa: B007 -- the clock reads it
        engine.send("r0", text)
        await anext(events)
    await events.aclose()
    assert registry.get_sample_value("octavo_time_per_output_token_seconds_sum", {"model": "m"}) == 2.0 / 4


async def test_the_tokens_of_a_job_that_goes_on_are_told_once_a_second(
    service: GenerationService, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(meter, "perf_counter", lambda: now)
    engine = PuppetEngine()
    events = service.stream(job_of(engine))
    told = []
    for now in (0.0, 0.9, 1.1, 1.9, 2.2):  # noqa: B007 -- the clock reads it
        engine.send("r0", "ab")
        await anext(events)
        told.append(registry.get_sample_value("octavo_generation_tokens_total", {"model": "m"}))
    await events.aclose()
    assert told == [None, None, 6, 6, 10]


async def test_a_refused_job_is_not_in_the_token_metrics(
    service: GenerationService, registry: CollectorRegistry
) -> None:
    engine = PuppetEngine()
    engine.num_waiting = 100
    with pytest.raises(Overloaded):
        await anext(service.stream(job_of(engine)))
    assert registry.get_sample_value("octavo_prompt_tokens_total", {"model": "m"}) is None


async def test_prompt_tokens_found_computed_count_once_for_each_prompt_as_for_its_first_sample(
    service: GenerationService, registry: CollectorRegistry
) -> None:
    engine = PuppetEngine()
    task = await start(service, job_of(engine, 2, num_prompts=2))
    for request_id, num_cached in (("r0", 90), ("r1", 7), ("r2", 0), ("r3", 90)):
        engine.send(request_id, "a", num_cached=num_cached)
        engine.send(request_id, "b", FinishReason.LENGTH)
    await task
    assert registry.get_sample_value("octavo_cached_prompt_tokens_total", {"model": "m"}) == 7


async def test_a_cancelled_job_has_found_what_its_samples_had_said_until_then(
    service: GenerationService, registry: CollectorRegistry
) -> None:
    engine = PuppetEngine()
    events = service.stream(job_of(engine, 2))
    engine.send("r1", "a", num_cached=7)
    await anext(events)
    await events.aclose()
    assert registry.get_sample_value("octavo_cached_prompt_tokens_total", {"model": "m"}) == 7


async def test_prompts_of_a_cancelled_job_that_had_no_token_are_not_said_to_be_computed(
    service: GenerationService, registry: CollectorRegistry
) -> None:
    engine = PuppetEngine()
    events = service.stream(job_of(engine, num_prompts=2))
    engine.send("r0", "a")
    await anext(events)
    await events.aclose()
    assert registry.get_sample_value("octavo_prompt_tokens_total", {"model": "m"}) == 2
    assert registry.get_sample_value("octavo_computed_prompt_tokens_total", {"model": "m"}) == 1


async def test_the_end_of_each_choice_is_told_with_its_reason(
    service: GenerationService, registry: CollectorRegistry
) -> None:
    engine = PuppetEngine()
    task = await start(service, job_of(engine, 2))
    engine.send("r0", "abc", FinishReason.STOP)
    engine.send("r1", "d", FinishReason.LENGTH)
    await task
    assert ended(registry) == {"stop": 1, "length": 1}
    assert registry.get_sample_value("octavo_choice_generation_tokens_sum", {"model": "m"}) == 4
    assert registry.get_sample_value("octavo_choice_prompt_tokens_sum", {"model": "m"}) == 2
    assert registry.get_sample_value("octavo_queue_time_seconds_count", {"model": "m"}) == 2
    assert registry.get_sample_value("octavo_computed_prompt_tokens_total", {"model": "m"}) == 1


async def test_a_choice_whose_client_goes_away_is_closed(
    service: GenerationService, registry: CollectorRegistry
) -> None:
    engine = PuppetEngine()
    events = service.stream(job_of(engine))
    engine.send("r0", "a")
    await anext(events)
    await events.aclose()
    assert ended(registry) == {"closed": 1}


async def test_a_choice_that_fails_is_an_error_and_the_others_are_closed(
    service: GenerationService, registry: CollectorRegistry
) -> None:
    engine = PuppetEngine()
    task = await start(service, job_of(engine, 2))
    engine.fail("r0", EngineError("no"))
    with pytest.raises(EngineError):
        await task
    assert ended(registry) == {"error": 1, "closed": 1}


async def test_a_job_tells_how_far_it_has_come(service: GenerationService, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 10.0
    monkeypatch.setattr(meter, "perf_counter", lambda: now)
    engine = PuppetEngine()
    job = job_of(engine)
    events = service.stream(job)
    for now, text in ((11.0, "a"), (12.0, "b")):  # noqa: B007 -- the clock reads it
        engine.send("r0", text, num_cached=1, queue_seconds=0.25)
        await anext(events)
    now = 14.0
    await events.aclose()
    assert job.progress == JobProgress(admitted=11.0, first_token=11.0, ended=14.0, queue_seconds=0.25, num_cached=1)
    assert job.progress.computed == 11.25


async def test_tokens_are_told_for_the_key_and_the_user_when_a_job_ends(
    service: GenerationService, registry: CollectorRegistry
) -> None:
    engine = PuppetEngine()
    task = await start(service, replace(job_of(engine), caller=Caller("key-1"), user="ann"))
    engine.send("r0", "abc", FinishReason.STOP)
    await task
    assert registry.get_sample_value("octavo_key_tokens_total", {"key": "key-1", "kind": "generation"}) == 3
    user = {"key": "key-1", "user": user_hash("ann"), "kind": "prompt"}
    assert registry.get_sample_value("octavo_user_tokens_total", user) == 1


class BrokenMetrics(Metrics):
    """Whatever it is told, it fails."""

    def _fail(self, *_: object, **__: object) -> None:
        raise RuntimeError("no metrics today")

    count_prompt_tokens = count_cached_prompt_tokens = count_computed_prompt_tokens = count_usage = _fail
    count_generation_tokens = observe_time_to_first_token = observe_time_per_output_token = observe_choice = (
        observe_phases
    ) = _fail


async def test_a_fault_of_the_metrics_ends_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    engine = PuppetEngine()
    service = GenerationService(BrokenMetrics(CollectorRegistry()), Limits())
    task = await start(service, job_of(engine))
    engine.send("r0", "ab")
    engine.send("r0", "c", FinishReason.STOP)
    assert "".join(event.text for event in await task) == "abc"
    assert "no metrics today" in caplog.text


def ended(registry: CollectorRegistry) -> dict[str, float]:
    samples = [sample for family in registry.collect() for sample in family.samples]
    return {s.labels["finish_reason"]: s.value for s in samples if s.name == "octavo_choices_total"}
