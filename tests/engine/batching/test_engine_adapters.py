"""Adapters that are loaded, unloaded and restored in the batching engine while its step loop runs."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest

from engine.batching.cores import ADAPTERS, AdaptedRunner, adapted, alone
from engine.builders import batching_engine, collect, hashed_logits, request, runner_limits, until
from octavo.core.adapters import Adapter
from octavo.core.request import GenerationRequest
from octavo.engine.batching.engine import AdapterTrial, BatchingEngine
from octavo.engine.runners.scripted import NextLogits
from octavo.errors import AdapterRefused, EngineError, EngineUnavailable

FIRST, SECOND, _ = ADAPTERS
LOST = "lost the adapter of this request"


class PickyRunner(AdaptedRunner):
    """refused: keys of adapters that it does not take."""

    def __init__(self, next_logits: NextLogits | None = None, refused: frozenset[str] = frozenset()) -> None:
        super().__init__(runner_limits(context_length=2000), next_logits or hashed_logits(0))
        self._refused = refused

    def load_adapter(self, adapter: Adapter) -> None:
        if adapter.key in self._refused:
            raise AdapterRefused("The adapter's file has changed since it was named.")
        super().load_adapter(adapter)


@asynccontextmanager
async def running(
    runner: PickyRunner | None = None, trial: AdapterTrial = lambda _: None, restored: tuple[Adapter, ...] = ()
) -> AsyncIterator[BatchingEngine]:
    engine = batching_engine(runner or PickyRunner(), adapter_trial=trial)
    for adapter in restored:
        engine.restore_adapter(adapter)
    loop = asyncio.create_task(asyncio.to_thread(engine.run))
    try:
        yield engine
    finally:
        await engine.close()
        await loop


def asked(key: str = "", max_tokens: int = 5) -> GenerationRequest:
    return request((1, 2), max_tokens, ignore_eos=True, adapter=key)


async def check_answer(engine: BatchingEngine, key: str) -> None:
    each = asked(key)
    tokens, reason = await collect(engine.generate(each))
    expected = alone(each, adapted(hashed_logits(0), key))
    assert (tuple(tokens), reason) == (expected.tokens, expected.end)


async def test_a_loaded_adapter_can_be_named_until_it_is_unloaded() -> None:
    async with running() as engine:
        await engine.load_adapter(FIRST)
        await check_answer(engine, FIRST.key)
        await engine.unload_adapter(FIRST.key)
        with pytest.raises(EngineError, match=LOST):
            await collect(engine.generate(asked(FIRST.key)))
        await check_answer(engine, "")


async def test_adapters_come_and_go_while_an_answer_is_written() -> None:
    async with running() as engine, aclosing(engine.generate(asked(max_tokens=1900))) as stream:
        await anext(stream)
        for _ in range(3):
            for adapter in (FIRST, SECOND):
                await engine.load_adapter(adapter)
            await asyncio.gather(*(check_answer(engine, key) for key in ("", FIRST.key, SECOND.key)))
            for adapter in (FIRST, SECOND):
                await engine.unload_adapter(adapter.key)
            await anext(stream)


async def test_adapters_are_restored_before_it_runs() -> None:
    async with running(restored=(FIRST, SECOND)) as engine:
        await asyncio.gather(*(check_answer(engine, key) for key in ("", FIRST.key, SECOND.key)))


def test_an_adapter_that_is_refused_when_it_is_to_be_restored_says_so() -> None:
    engine = batching_engine(PickyRunner(refused=frozenset({FIRST.key})))
    with pytest.raises(AdapterRefused):
        engine.restore_adapter(FIRST)
    engine.restore_adapter(SECOND)


async def test_what_the_trial_refuses_never_comes_to_the_runner() -> None:
    tried = []

    def trial(adapter: Adapter) -> None:
        tried.append(adapter)
        raise AdapterRefused("The file is broken.")

    async with running(trial=trial) as engine:
        with pytest.raises(AdapterRefused, match="broken"):
            await engine.load_adapter(FIRST)
        with pytest.raises(EngineError, match=LOST):
            await collect(engine.generate(asked(FIRST.key)))
    assert tried == [FIRST]


async def test_what_the_runner_refuses_changes_nothing() -> None:
    async with running(PickyRunner(refused=frozenset({SECOND.key}))) as engine:
        await engine.load_adapter(FIRST)
        with pytest.raises(AdapterRefused, match="has changed"):
            await engine.load_adapter(SECOND)
        with pytest.raises(EngineError, match=LOST):
            await collect(engine.generate(asked(SECOND.key)))
        await asyncio.gather(*(check_answer(engine, key) for key in ("", FIRST.key)))


async def test_unloading_what_is_not_loaded_is_not_an_error() -> None:
    async with running() as engine:
        await engine.unload_adapter("never loaded")
        await check_answer(engine, "")


async def test_an_adapter_is_tried_while_answers_are_written() -> None:
    gate, is_trying = threading.Event(), threading.Event()

    def trial(_: Adapter) -> None:
        is_trying.set()
        assert gate.wait(60)

    async with running(trial=trial) as engine:
        loading = asyncio.create_task(engine.load_adapter(FIRST))
        await until(is_trying.is_set)
        await check_answer(engine, "")
        assert not loading.done()
        gate.set()
        await loading
        await check_answer(engine, FIRST.key)


class Stuck:
    """A runner in a step that ends when the gate is opened, so that commands pile up meanwhile."""

    def __init__(self) -> None:
        self.gate, self.is_in_step = threading.Event(), threading.Event()
        self.runner = PickyRunner(self._next_logits)

    def _next_logits(self, tokens: tuple[int, ...]) -> object:
        self.is_in_step.set()
        assert self.gate.wait(60)
        return hashed_logits(0)(tokens)


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_who_waits_for_an_adapter_when_it_is_closed_is_refused(is_cancelled: bool) -> None:
    stuck = Stuck()
    async with running(stuck.runner) as engine:
        stream = asyncio.create_task(collect(engine.generate(asked())))
        await until(stuck.is_in_step.is_set)
        calls = [asyncio.create_task(call) for call in (engine.load_adapter(FIRST), engine.unload_adapter("a"))]
        await until(lambda: engine._commands.qsize() == 2)
        if is_cancelled:
            calls[0].cancel()
        await asyncio.sleep(0)
        await engine.close()
        stuck.gate.set()
        results = await asyncio.gather(stream, *calls, return_exceptions=True)
    kinds = [type(result) for result in results]
    assert kinds == [
        EngineUnavailable,
        asyncio.CancelledError if is_cancelled else EngineUnavailable,
        EngineUnavailable,
    ]


async def test_a_closed_engine_takes_no_adapters() -> None:
    async with running() as engine:
        await engine.close()
        with pytest.raises(EngineUnavailable):
            await engine.load_adapter(FIRST)
        with pytest.raises(EngineUnavailable):
            await engine.unload_adapter("a")


async def test_a_call_that_is_cancelled_before_its_turn_does_nothing() -> None:
    stuck = Stuck()
    async with running(stuck.runner) as engine:
        stream = asyncio.create_task(collect(engine.generate(asked())))
        await until(stuck.is_in_step.is_set)
        loading = asyncio.create_task(engine.load_adapter(FIRST))
        await until(lambda: engine._commands.qsize() == 1)
        loading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await loading
        stuck.gate.set()
        assert len((await stream)[0]) == 5
        with pytest.raises(EngineError, match=LOST):
            await collect(engine.generate(asked(FIRST.key)))
