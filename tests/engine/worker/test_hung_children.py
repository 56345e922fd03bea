"""Children that live and do not work: they are found, and replaced."""

import asyncio
import os
import signal
import time
from functools import partial

import pytest

from engine.builders import collect, text_request, until
from octavo.engine.base import EngineState
from octavo.engine.specs import ScriptedSpec
from octavo.engine.worker import WorkerEngine
from octavo.engine.worker.engine import WATCH_INTERVAL
from octavo.errors import EngineDied, EngineUnavailable, RequestQuarantined

from .workers import ANSWER, ready, starting

SILENCE = 3.0
"""Seconds: long enough for a busy machine to let a child say every second that it lives."""
LONG = 10 * SILENCE
WORK = {
    "idle": None,
    "before the first token": f'@script {{"delay": {LONG}}}',
    "between tokens": '@script {"hang_at": 1}',
}


def stop(engine: WorkerEngine) -> None:
    assert engine.pid is not None
    os.kill(engine.pid, signal.SIGSTOP)


async def answers(engine: WorkerEngine) -> bool:
    tokens, _ = await collect(engine.generate(text_request("hello")))
    return len(tokens) > 0


def has_died(engine: WorkerEngine, number: int) -> bool:
    return engine.health().deaths == {"hung_step": number}


@pytest.mark.slow
@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
async def test_a_stopped_child_is_found_and_replaced_and_its_requests_are_answered(work: str | None) -> None:
    async with ready(max_silence=SILENCE) as engine:
        streams = []
        if work is not None:
            streams = [asyncio.create_task(collect(engine.generate(text_request(work)))) for _ in range(4)]
            await until(lambda: engine.health().num_running == len(streams))
        stop(engine)
        await until(lambda: engine.health().num_restarts == 1)
        assert engine.health().deaths == {"silent": 1}
        for stream in streams:
            with pytest.raises(EngineDied):
                await stream
        await until(lambda: engine.health().state is EngineState.READY)
        assert await answers(engine)


@pytest.mark.slow
async def test_a_child_that_is_stopped_while_it_loads_is_replaced_without_the_fallback() -> None:
    async with starting(ScriptedSpec("abcdef", load_delay=LONG), ANSWER, max_silence=1) as engine:
        await until(lambda: engine.pid is not None)
        pid = engine.pid
        stop(engine)
        await until(lambda: engine.health().num_restarts > 0)
        assert "said nothing" in engine.health().message
        await until(lambda: engine.pid not in (None, pid))
        await asyncio.sleep(2 * WATCH_INTERVAL)
        assert engine.health().state is EngineState.RESTARTING, "the fall-back would be ready"


@pytest.mark.slow
async def test_a_step_that_does_not_end_is_ended_and_what_came_later_is_innocent() -> None:
    hang = '@script {"hang_at": 1}'
    async with ready(max_step=1) as engine:
        for number in (1, 2):
            hung = asyncio.create_task(collect(engine.generate(text_request(hang))))
            await until(lambda: engine.health().step > 0)
            later = asyncio.create_task(collect(engine.generate(text_request(f'@script {{"delay": {LONG}}}'))))
            for stream in (hung, later):
                with pytest.raises(EngineUnavailable):  # the second time the last suspect is alone, and the other waits
                    await stream
            await until(partial(has_died, engine, number))
            assert "a step took longer than 1 s" in engine.health().message
            await until(lambda: engine.health().state is EngineState.READY)
        with pytest.raises(RequestQuarantined):
            await collect(engine.generate(text_request(hang)))
        assert engine.health().num_quarantined == 1
        assert await answers(engine)


@pytest.mark.slow
async def test_a_parent_that_stands_still_with_its_child_does_not_blame_it() -> None:
    """As on a machine that is suspended: for both no time has passed in which anything could be heard."""
    async with ready(max_silence=SILENCE, max_step=SILENCE) as engine:
        hung = asyncio.create_task(collect(engine.generate(text_request('@script {"hang_at": 1}'))))
        await until(lambda: engine.health().step > 0)
        pid = engine.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        time.sleep(1.5 * SILENCE)  # noqa: ASYNC251 – the loop is to stand still
        os.kill(pid, signal.SIGCONT)
        await asyncio.sleep(3 * WATCH_INTERVAL)
        assert (engine.pid, engine.health().num_restarts) == (pid, 0)
        hung.cancel()
        await until(lambda: engine.health().step == 0)
        assert await answers(engine)
