"""The batching engine with its step loop in a thread."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

import numpy as np
import pytest

from engine.builders import batching_engine, collect, hashed_logits, request, scripted_runner, until
from octavo.core.output import FinishReason
from octavo.engine.base import EngineState
from octavo.engine.batching.engine import BatchingEngine
from octavo.engine.batching.runner import RunnerFailed
from octavo.engine.runners.scripted import NextLogits, ScriptedRunner
from octavo.errors import EngineUnavailable


@asynccontextmanager
async def running(runner: ScriptedRunner) -> AsyncIterator[BatchingEngine]:
    engine = batching_engine(runner)
    loop = asyncio.create_task(asyncio.to_thread(engine.run))
    try:
        yield engine
    finally:
        await engine.close()
        await loop


def gated(gate: threading.Event) -> NextLogits:
    """Logits that come only while the gate is open."""

    def next_logits(tokens: tuple[int, ...]) -> np.ndarray:
        gate.wait()
        return hashed_logits(0)(tokens)

    return next_logits


async def test_all_streams_are_answered_whatever_their_number() -> None:
    async with running(scripted_runner()) as engine:
        asked = [request(max_tokens=i, ignore_eos=True) for i in range(20)]
        answers = await asyncio.gather(*(collect(engine.generate(each)) for each in asked))
        assert [(len(tokens), reason) for tokens, reason in answers] == [(i, FinishReason.LENGTH) for i in range(20)]
        await until(lambda: engine.health().num_running == 0)
        assert engine.health().num_waiting == 0


async def test_the_same_request_gets_the_same_tokens_again() -> None:
    async with running(scripted_runner()) as engine:
        asked = request((5, 6), 30, id="twice", ignore_eos=True)
        assert await collect(engine.generate(asked)) == await collect(engine.generate(asked))


async def test_closing_a_stream_frees_its_slot() -> None:
    async with running(scripted_runner(num_slots=1, context_length=100_000)) as engine:
        async with aclosing(engine.generate(request(max_tokens=90_000, ignore_eos=True))) as stream:
            await anext(stream)
            assert engine.health().num_running == 1
        assert len((await collect(engine.generate(request(max_tokens=3, ignore_eos=True))))[0]) == 3


async def test_a_waiting_stream_can_be_closed() -> None:
    gate = threading.Event()
    async with running(scripted_runner(gated(gate), num_slots=1)) as engine:
        first, second, third = (
            asyncio.create_task(collect(engine.generate(request(max_tokens=2, ignore_eos=True)))) for _ in range(3)
        )
        await until(lambda: engine.health().num_running == 1)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        gate.set()
        assert [len((await task)[0]) for task in (first, third)] == [2, 2]


async def test_a_step_keeps_its_number_until_it_ends_and_an_idle_engine_is_in_none() -> None:
    gate = threading.Event()
    async with running(scripted_runner(gated(gate))) as engine:
        await until(lambda: engine.health().step == 0)
        stream = asyncio.create_task(collect(engine.generate(request(max_tokens=2, ignore_eos=True))))
        await until(lambda: engine.health().num_running == 1)
        step = engine.health().step
        await asyncio.sleep(0.02)
        assert engine.health().step == step > 0
        gate.set()
        await stream
        await until(lambda: engine.health().step == 0)


async def test_close_ends_every_stream_and_refuses_new_ones() -> None:
    gate = threading.Event()
    async with running(scripted_runner(gated(gate), num_slots=2)) as engine:
        streams = [asyncio.create_task(collect(engine.generate(request()))) for _ in range(5)]
        await until(lambda: engine.health().num_running == 2)
        await engine.close()
        gate.set()
        for stream in streams:
            with pytest.raises(EngineUnavailable):
                await stream
        with pytest.raises(EngineUnavailable):
            await anext(engine.generate(request()))
        assert engine.health().state is EngineState.CLOSED
        await engine.close()


def failing(error: Exception) -> Callable[[tuple[int, ...]], np.ndarray]:
    def next_logits(tokens: tuple[int, ...]) -> np.ndarray:
        raise error

    return next_logits


async def test_a_failed_runner_ends_the_step_loop_with_its_error() -> None:
    engine = batching_engine(scripted_runner(failing(RunnerFailed("the state is lost"))))
    loop = asyncio.create_task(asyncio.to_thread(engine.run))
    stream = asyncio.create_task(collect(engine.generate(request())))
    with pytest.raises(RunnerFailed, match="the state is lost"):
        await loop
    stream.cancel()
