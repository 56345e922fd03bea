"""A request that ends the engine's process: a few times, and not once more, whoever sends it and whatever else runs."""

import asyncio
import math
import os
import signal
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

from .workers import ANSWER, ready

POISON = text_request('@script {"exit_at": 1}')
PAUSE = 0.05
"""Seconds until a client asks again."""
NUM_CLIENTS = 8
NUM_ENGINES = 8
NUM_DEATHS = 24
MAX_DEATHS = 2 + int(math.log2(ANSWER.num_slots))
MEGABYTES = 8
"""In which nothing that a death costs for ever could hide: it would be a third of one each."""


def again(asked: GenerationRequest, seed: int) -> GenerationRequest:
    return replace(asked, id=request().id, sampling=SamplingParams(seed=seed))


def kill(engine: WorkerEngine) -> None:
    assert engine.pid is not None
    os.kill(engine.pid, signal.SIGKILL)


async def answer_or_refusal(engine: WorkerEngine, asked: GenerationRequest) -> str:
    """Of a client that asks again as long as it is told that it may."""
    for seed in range(4000):  # with growing pauses between deaths
        try:
            await collect(engine.generate(again(asked, seed)))
        except EngineUnavailable:
            await asyncio.sleep(PAUSE)
        except RequestQuarantined:
            return "refused"
        else:
            return "answered"
    raise AssertionError("it was neither answered nor refused")


@pytest.mark.slow
@pytest.mark.parametrize("num_poisons", [1, 2])
async def test_a_poison_that_many_send_again_and_again_is_found_in_a_few_deaths_and_all_others_are_answered(
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
        assert engine.health().num_restarts <= num_poisons * MAX_DEATHS


@pytest.mark.slow
async def test_a_poison_that_is_another_one_each_time_has_nobody_else_refused() -> None:
    async with ready() as engine:
        innocent = [text_request(f'{number}\n@script {{"delay": 0.05}}') for number in range(4)]
        for number in range(4):
            poison = text_request(f'{number}\n@script {{"exit_at": 3, "delay": 0.02}}')
            streams = [asyncio.create_task(answer_or_refusal(engine, asked)) for asked in innocent]
            await until(lambda: engine.health().num_running == len(innocent))
            with pytest.raises(EngineDied):
                await collect(engine.generate(poison))
            assert await asyncio.gather(*streams) == ["answered"] * len(innocent)
        assert engine.health().num_quarantined == 0


@pytest.mark.slow
async def test_a_poison_whose_client_leaves_each_time_is_found() -> None:
    async with ready() as engine:
        poison = text_request('@script {"hang_at": 0}')
        for seed in range(2):
            stream = asyncio.create_task(collect(engine.generate(again(poison, seed))))
            await until(lambda: engine.health().num_running == 1)
            kill(engine)
            stream.cancel()
            await until(lambda: engine.health().state is not EngineState.READY)
            await until(lambda: engine.health().state is EngineState.READY)
        assert await answer_or_refusal(engine, poison) == "refused"


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
    here = psutil.Process()
    num_others = len(here.children())  # servers of other tests
    async with AsyncExitStack() as stack:
        engines = [await stack.enter_async_context(ready()) for _ in range(NUM_ENGINES)]
        await die_often(engines, range(2))
        files, threads, memory = here.num_fds(), here.num_threads(), here.memory_info().rss
        await die_often(engines, range(2, 2 + NUM_DEATHS // NUM_ENGINES))
        assert here.num_fds() <= files
        assert here.num_threads() <= threads
        assert here.memory_info().rss - memory < MEGABYTES * 2**20
        assert len(here.children()) == num_others + NUM_ENGINES
