"""Suspects are computed one at a time, and what ends the process twice is kept out. No process is needed for that."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest

from engine.builders import request, text_request
from octavo.core.grammar import Grammar
from octavo.core.images import Image
from octavo.core.request import GenerationRequest
from octavo.core.sampling import SamplingParams
from octavo.engine.worker.quarantine import Quarantine, Work, digest_of
from octavo.errors import RequestQuarantined

POISON, OTHER, THIRD = (text_request(text) for text in ("poison", "other", "third"))


def again(asked: GenerationRequest) -> GenerationRequest:
    """As a client sends it again: under another id, with another seed."""
    return replace(asked, id=request().id, sampling=replace(asked.sampling, seed=5), cache_key="other")


@asynccontextmanager
async def computing(quarantine: Quarantine, *works: GenerationRequest) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for work in works:
            await stack.enter_async_context(quarantine.computing(work.id, work))
        yield


async def died(*works: GenerationRequest) -> Quarantine:
    """After a death with this work."""
    quarantine = Quarantine()
    async with computing(quarantine, *works):
        quarantine.blame(hung_step=False)
    return quarantine


def begin(quarantine: Quarantine, work: GenerationRequest, ends: asyncio.Event) -> asyncio.Task[None]:
    async def compute() -> None:
        async with quarantine.computing(work.id, work):
            await ends.wait()
            quarantine.finish(work.id)

    return asyncio.create_task(compute())


async def turns() -> None:
    """Of the loop, as many as anything takes that waits for nothing else."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_suspect_waits_until_the_other_has_ended_and_others_do_not_wait() -> None:
    quarantine, ends, never = await died(POISON, OTHER), asyncio.Event(), asyncio.Event()
    first = begin(quarantine, again(OTHER), ends)
    await turns()
    second = begin(quarantine, again(POISON), ends)
    stranger = begin(quarantine, THIRD, never)
    await turns()
    quarantine.blame(hung_step=False)  # which says who is computed
    assert quarantine.num_found == 1
    with pytest.raises(RequestQuarantined):
        async with computing(quarantine, again(OTHER)):
            pass
    ends.set()
    await asyncio.gather(first, second)
    stranger.cancel()


async def test_a_suspect_that_ends_is_cleared_and_the_next_one_begins() -> None:
    quarantine, ends = await died(POISON, OTHER), asyncio.Event()
    first = begin(quarantine, again(OTHER), ends)
    await turns()
    second = begin(quarantine, again(POISON), asyncio.Event())
    await turns()
    ends.set()
    await first
    await turns()
    async with computing(quarantine, again(OTHER)):  # it is no suspect any more
        quarantine.blame(hung_step=False)
    assert quarantine.num_found == 1
    second.cancel()
    with pytest.raises(RequestQuarantined):
        async with computing(quarantine, again(POISON)):
            pass


async def test_the_same_suspect_many_times_is_one() -> None:
    quarantine = await died(*(again(POISON) for _ in range(8)), OTHER)
    async with computing(quarantine, *(again(POISON) for _ in range(8))):
        quarantine.blame(hung_step=False)
    assert quarantine.num_found == 1


async def test_a_suspect_that_is_given_up_makes_way_and_stays_suspect() -> None:
    quarantine = await died(POISON, OTHER)
    async with computing(quarantine, again(POISON)):
        waiting = begin(quarantine, again(OTHER), ends := asyncio.Event())
        await turns()
    ends.set()
    await waiting
    async with computing(quarantine, again(POISON)):
        quarantine.blame(hung_step=False)
    assert quarantine.num_found == 1


async def test_what_has_come_after_a_hung_step_began_is_innocent_and_what_has_left_is_not() -> None:
    quarantine = Quarantine()
    async with computing(quarantine, POISON):
        quarantine.observe_step(1)
    async with computing(quarantine, OTHER):
        quarantine.blame(hung_step=True)
    async with computing(quarantine, again(OTHER), again(POISON)):
        quarantine.blame(hung_step=False)
    assert quarantine.num_found == 1
    with pytest.raises(RequestQuarantined):
        async with computing(quarantine, again(POISON)):
            pass


async def test_who_waits_for_a_turn_is_let_in_when_the_process_dies_so_that_it_can_be_told() -> None:
    quarantine, ends = await died(POISON, OTHER), asyncio.Event()
    ends.set()
    async with computing(quarantine, again(POISON)):
        waiting = begin(quarantine, again(OTHER), ends)
        await turns()
        quarantine.blame(hung_step=False)
        await waiting


@pytest.mark.parametrize("work", [Image.of(b"bad picture"), ("a text", 3)])
async def test_images_and_texts_can_be_suspects_too(work: Work) -> None:
    quarantine = Quarantine()
    for _ in range(2):
        async with quarantine.computing(1, work):
            quarantine.blame(hung_step=False)
    with pytest.raises(RequestQuarantined):
        async with quarantine.computing(2, work):
            pass


def test_a_digest_is_of_what_is_computed_and_not_of_who_asks() -> None:
    asked = replace(POISON, stop_tokens=frozenset({1000, 2, 30}), sampling=SamplingParams(temperature=0.5, seed=1))
    assert digest_of(again(asked)) == digest_of(asked)
    assert digest_of(replace(asked, owner=("key", "user"))) == digest_of(asked)
    assert digest_of(replace(asked, stop_tokens=frozenset({30, 1000, 2}))) == digest_of(asked)
    others = (
        replace(asked, prompt_tokens=(*asked.prompt_tokens, 1)),
        replace(asked, sampling=replace(asked.sampling, temperature=0.6)),
        replace(asked, grammar=Grammar("other")),
        replace(asked, adapter="adapter"),
        replace(asked, max_tokens=asked.max_tokens - 1),
    )
    assert len({digest_of(each) for each in (asked, *others)}) == 1 + len(others)
