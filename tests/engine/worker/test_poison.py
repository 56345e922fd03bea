"""A request that ends the engine's process: twice, and not once more, whoever sends it and whatever else runs."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace

import psutil
import pytest

from engine.builders import collect, request, text_request, until
from octavo.core.request import GenerationRequest
from octavo.core.sampling import SamplingParams
from octavo.engine.base import EngineState
from octavo.engine.worker import WorkerEngine
from octavo.errors import EngineDied, EngineUnavailable, RequestQuarantined

from .workers import ready

POISON = text_request('@script {"exit_at": 1}')
PAUSE = 0.05
"""Seconds until a client asks again."""
NUM_CLIENTS = 8
NUM_ENGINES = 5
NUM_DEATHS = 50
MEGABYTES = 8
"""In which nothing that a death costs for ever could hide: it would be 160 kB each."""


def again(asked: GenerationRequest, seed: int) -> GenerationRequest:
    return replace(asked, id=request().id, sampling=SamplingParams(seed=seed))


async def answer_or_refusal(engine: WorkerEngine, asked: GenerationRequest) -> str:
    """Of a client that asks again as long as it is told that it may."""
    for seed in range(1000):
        try:
            await collect(engine.generate(again(asked, seed)))
        except EngineUnavailable:
            await asyncio.sleep(PAUSE)
        except RequestQuarantined:
            return "refused"
        else:
            return "answered"
    raise AssertionError("it was neither answered nor refused")


@pytest.mark.parametrize("num_poisons", [1, 2])
async def test_a_poison_that_many_send_again_and_again_kills_twice_and_all_others_are_answered(
    num_poisons: int,
) -> None:
    async with ready() as engine:
        poisons = [text_request(f'@script {{"exit_at": {position}}}') for position in range(num_poisons)]
        traffic = [text_request(f'{number}\n@script {{"delay": 0.01}}') for number in range(NUM_CLIENTS)]
        results = await asyncio.gather(
            *(answer_or_refusal(engine, poison) for poison in poisons for _ in range(NUM_CLIENTS)),
            *(answer_or_refusal(engine, asked) for asked in traffic),
        )
        num_bad = num_poisons * NUM_CLIENTS
        assert results == ["refused"] * num_bad + ["answered"] * NUM_CLIENTS
        assert engine.health().num_quarantined == num_poisons
        assert engine.health().num_restarts <= 2 * num_poisons


async def test_a_suspect_does_not_hold_up_others() -> None:
    async with ready() as engine:
        hang = text_request('@script {"hang_at": 1}')
        streams = [asyncio.create_task(collect(engine.generate(asked))) for asked in (hang, again(POISON, 0))]
        await asyncio.wait(streams)
        assert all(isinstance(stream.exception(), EngineUnavailable) for stream in streams)
        await until(lambda: engine.health().state is EngineState.READY)
        suspect = asyncio.create_task(collect(engine.generate(again(hang, 1))))
        await until(lambda: engine.health().num_running == 1)
        waiting = asyncio.create_task(collect(engine.generate(again(POISON, 1))))
        assert await answer_or_refusal(engine, text_request("hello")) == "answered"
        assert not waiting.done()
        suspect.cancel()
        await asyncio.wait([waiting])
        assert await answer_or_refusal(engine, POISON) == "refused"
        assert await answer_or_refusal(engine, text_request("hello")) == "answered"


async def die_and_return(engine: WorkerEngine, number: int) -> None:
    poison = text_request(f'{number}\n@script {{"exit_at": 0}}')
    with pytest.raises(EngineDied):
        await collect(engine.generate(poison))
    await until(lambda: engine.health().state is EngineState.READY)
    assert await answer_or_refusal(engine, text_request("hello")) == "answered"


async def die_often(engines: Sequence[WorkerEngine], numbers: range) -> None:
    async def die(engine: WorkerEngine) -> None:
        for number in numbers:
            await die_and_return(engine, number)

    await asyncio.gather(*(die(engine) for engine in engines))


@pytest.mark.slow
async def test_nothing_grows_while_children_die() -> None:
    async with AsyncExitStack() as stack:
        engines = [await stack.enter_async_context(ready()) for _ in range(NUM_ENGINES)]
        here = psutil.Process()
        await die_often(engines, range(2))
        files, threads, memory = here.num_fds(), here.num_threads(), here.memory_info().rss
        await die_often(engines, range(2, 2 + NUM_DEATHS // NUM_ENGINES))
        assert here.num_fds() <= files
        assert here.num_threads() <= threads
        assert here.memory_info().rss - memory < MEGABYTES * 2**20
        assert len(here.children()) == NUM_ENGINES
