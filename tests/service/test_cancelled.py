"""Choices that the server ends: what they hold, and what they leave behind."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from service_builders import PuppetEngine, abandon, job_of, start, turns

from octavo.core.limits import Limits
from octavo.core.output import FinishReason, TextEvent
from octavo.engine.scripted import ScriptedEngine
from octavo.engine.specs import ScriptedSpec
from octavo.errors import ImageUrlRefused
from octavo.service import GenerationService
from octavo.telemetry.metrics import Metrics

CANCELLED, LENGTH = FinishReason.CANCELLED, FinishReason.LENGTH


def service_of(*, request_timeout: float | None = None) -> GenerationService:
    limits = Limits(max_queue_per_slot=2)
    return GenerationService(Metrics(CollectorRegistry()), limits, request_timeout=request_timeout)


@pytest.fixture
def service() -> GenerationService:
    return service_of()


def endings(events: Sequence[TextEvent]) -> dict[int, tuple[str, FinishReason]]:
    """Text and finish reason by choice; each choice must have ended once, with its last event."""
    texts: defaultdict[int, str] = defaultdict(str)
    ended: dict[int, tuple[str, FinishReason]] = {}
    for event in events:
        assert event.index not in ended
        texts[event.index] += event.text
        if event.finish_reason is not None:
            ended[event.index] = (texts[event.index], event.finish_reason)
    assert ended.keys() == texts.keys()
    return ended


def assert_nothing_is_left(engine: PuppetEngine) -> None:
    assert sorted(engine.closed) == sorted(engine.opened)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_every_running_choice_of_every_job_ends_with_its_text_so_far(service: GenerationService) -> None:
    engine = PuppetEngine()
    first, second = [await start(service, job_of(engine, 2, name=name)) for name in "ab"]
    engine.send("a0", "one")
    engine.send("b1", "two")
    await turns(5)
    service.cancel_all()
    assert endings(await first) == {0: ("one", CANCELLED), 1: ("", CANCELLED)}
    assert endings(await second) == {0: ("", CANCELLED), 1: ("two", CANCELLED)}
    assert len(engine.closed) == 4
    assert_nothing_is_left(engine)


async def test_text_that_was_held_back_is_part_of_a_cancelled_answer(service: GenerationService) -> None:
    engine = PuppetEngine()
    task = await start(service, job_of(engine, stop=("never",)))
    engine.send("r0", "I nev")
    await turns(5)
    service.cancel_all()
    assert endings(await task) == {0: ("I nev", CANCELLED)}


async def test_a_chunk_that_came_before_the_cancellation_is_part_of_the_answer(service: GenerationService) -> None:
    engine = PuppetEngine()
    task = await start(service, job_of(engine))
    engine.send("r0", "last words")
    service.cancel_all()
    assert endings(await task) == {0: ("last words", CANCELLED)}


async def test_a_choice_whose_last_chunk_came_before_the_cancellation_ends_as_it_would_have(
    service: GenerationService,
) -> None:
    engine = PuppetEngine()
    task = await start(service, job_of(engine))
    engine.send("r0", "whole", LENGTH)
    service.cancel_all()
    assert endings(await task) == {0: ("whole", LENGTH)}


async def test_choices_that_wait_for_their_turn_end_empty_and_never_reach_the_engine(
    service: GenerationService,
) -> None:
    engine = PuppetEngine(num_slots=2)
    task = await start(service, job_of(engine, 50))
    engine.send("r1", "begun")
    await turns(5)
    service.cancel_all()
    assert endings(await task) == {index: ("begun" if index == 1 else "", CANCELLED) for index in range(50)}
    assert engine.opened == ["r0", "r1"]
    assert_nothing_is_left(engine)


async def test_choices_in_the_engines_own_queue_end_too_and_leave_their_places(service: GenerationService) -> None:
    engine = ScriptedEngine(ScriptedSpec(hang_at=1, num_slots=1))
    tasks = [await start(service, job_of(engine, name=name)) for name in "ab"]
    assert engine.health().num_waiting == 1
    service.cancel_all()
    assert [endings(await task) for task in tasks] == [{0: ("The ", CANCELLED)}, {0: ("", CANCELLED)}]
    assert engine.health().num_running == engine.health().num_waiting == 0


async def test_a_job_that_is_asked_for_after_the_end_is_answered_at_once_and_empty(service: GenerationService) -> None:
    engine = PuppetEngine()
    service.cancel_all()
    for _ in range(100):  # and takes no place from the next one
        assert endings(await (await start(service, job_of(engine, 8)))) == dict.fromkeys(range(8), ("", CANCELLED))
    assert engine.opened == []


async def test_a_reader_that_comes_back_late_gets_what_was_there_and_then_the_end(service: GenerationService) -> None:
    engine = PuppetEngine()
    events = service.stream(job_of(engine))
    for character in "abcdefgh":
        engine.send("r0", character)
    read = [await anext(events)]
    await turns(5)
    service.cancel_all()
    await turns(5)
    read += [event async for event in events]
    [(text, reason)] = endings(read).values()
    assert text
    assert "abcdefgh".startswith(text)
    assert reason is CANCELLED
    assert_nothing_is_left(engine)


@pytest.mark.parametrize("order", ["the server first", "the client first"])
async def test_a_client_that_goes_away_at_the_same_moment_is_gone(service: GenerationService, order: str) -> None:
    engine = PuppetEngine()
    task = await start(service, job_of(engine, 3))
    ends = [service.cancel_all, task.cancel]
    for end in ends if order == "the server first" else reversed(ends):
        end()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(engine.closed) == 3
    assert_nothing_is_left(engine)


@given(num_turns=st.integers(0, 12))
def test_a_client_that_goes_away_while_its_choices_are_ended_leaves_nothing_behind(num_turns: int) -> None:
    async def scenario() -> None:
        engine, service = PuppetEngine(num_slots=2), service_of()
        task = await start(service, job_of(engine, 4))
        service.cancel_all()
        await turns(num_turns)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() or len(endings(task.result())) == 4
        assert_nothing_is_left(engine)

    asyncio.run(scenario())


async def test_a_request_timeout_ends_a_job_and_no_other(service: GenerationService) -> None:
    engine = PuppetEngine()
    impatient = service_of(request_timeout=0.01)
    others = [
        await start(service, job_of(engine, name="patient")),
        await start(impatient, job_of(engine, name="quick")),
    ]
    late = await start(impatient, job_of(engine, 2, name="late"))
    engine.send("late1", "begun")
    engine.send("quick0", "b", LENGTH)
    assert endings(await late) == {0: ("", CANCELLED), 1: ("begun", CANCELLED)}
    engine.send("patient0", "a", LENGTH)
    assert [endings(await task) for task in others] == [{0: ("a", LENGTH)}, {0: ("b", LENGTH)}]
    next_task = await start(impatient, job_of(engine, name="next"))
    engine.send("next0", "c", LENGTH)
    assert endings(await next_task) == {0: ("c", LENGTH)}
    assert_nothing_is_left(engine)


async def test_a_job_that_timed_out_gives_its_places_back() -> None:
    engine, service = PuppetEngine(num_slots=2), service_of(request_timeout=0.001)
    for number in range(20):
        assert len(await (await start(service, job_of(engine, 2, name=f"{number}-")))) == 2
    assert len(engine.closed) == 40


async def test_a_timeout_that_is_not_reached_does_nothing() -> None:
    engine, service = PuppetEngine(), service_of(request_timeout=3600)
    task = await start(service, job_of(engine))
    engine.send("r0", "a", LENGTH)
    assert endings(await task) == {0: ("a", LENGTH)}
    await abandon(await start(service, job_of(engine, name="next")))
    assert_nothing_is_left(engine)


@given(steps=st.lists(st.sampled_from([0, 1, 2, "turn", "rest"]), max_size=30), num_slots=st.integers(1, 3))
def test_whenever_a_job_is_ended_each_choice_holds_what_was_read_and_nothing_is_left(
    steps: Sequence[int | str], num_slots: int
) -> None:
    async def scenario() -> None:
        engine, service = PuppetEngine(num_slots), service_of()
        task = await start(service, job_of(engine, 3))
        sent = [""] * num_slots  # to the choices that have had their turn
        read = sent.copy()
        for number, step in enumerate(steps):
            if isinstance(step, str):
                await turns(1 if step == "turn" else 50)
                read = sent.copy() if step == "rest" else read
            elif step < num_slots:
                character = chr(ord("a") + number % 26)
                engine.send(f"r{step}", character)
                sent[step] += character
        service.cancel_all()
        engine.send("r0", "too late")
        ended = endings(await task)
        assert all(reason is CANCELLED for _, reason in ended.values())
        texts = [ended[index][0] for index in range(3)]
        assert not any(texts[num_slots:])
        for text, all_sent, all_read in zip(texts, sent, read, strict=False):
            assert all_sent.startswith(text)
            assert text.startswith(all_read)
        assert_nothing_is_left(engine)

    asyncio.run(scenario())


@pytest.mark.parametrize("num_choices", [1, 3])
async def test_a_stream_that_nobody_reads_leaves_the_engine_and_the_queue_when_its_time_is_over(
    num_choices: int,
) -> None:
    engine, service = PuppetEngine(num_slots=1), service_of(request_timeout=0.05)
    events = service.stream(job_of(engine, num_choices))
    for index in range(num_choices):
        engine.send(f"r{index}", "begun")
    first = await anext(events)
    for _ in range(5):  # more than may wait for a reader
        engine.send("r0", "more")
    await engine.has_closed.wait()
    others = [await start(service, job_of(engine, name=f"other{number}-")) for number in range(3)]
    assert engine.opened[-3:] == [f"other{number}-0" for number in range(3)], "no place is taken any more"
    ended = endings([first, *[event async for event in events]])
    assert [reason for _, reason in ended.values()] == [CANCELLED] * num_choices
    assert ended[0][0].startswith("begun")
    await abandon(*others)
    assert_nothing_is_left(engine)


@pytest.mark.parametrize("num_choices", [1, 3])
async def test_closing_a_stream_that_nobody_read_in_time_leaves_nothing_behind(num_choices: int) -> None:
    engine, service = PuppetEngine(num_slots=2), service_of()
    events = service.stream(job_of(engine, num_choices))
    engine.send("r0", "begun")
    await anext(events)
    await turns(5)
    service.cancel_all()
    await events.aclose()
    assert_nothing_is_left(engine)


async def test_a_job_whose_time_was_over_before_it_began_is_answered_at_once_and_empty() -> None:
    engine, service = PuppetEngine(), service_of(request_timeout=3600)
    events = [event async for event in service.stream(job_of(engine), waited=3600)]
    assert endings(events) == {0: ("", CANCELLED)}


async def test_images_that_take_all_of_a_requests_time_are_not_waited_for() -> None:
    engine, service = PuppetEngine(), service_of(request_timeout=0.01)
    with pytest.raises(ImageUrlRefused, match="within the"):
        async with service.preparing(job_of(engine).model, ()):
            await asyncio.Event().wait()
    with pytest.raises(TimeoutError, match="of something else"):
        async with service.preparing(job_of(engine).model, ()):
            raise TimeoutError("of something else")
