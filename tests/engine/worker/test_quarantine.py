"""Suspects are computed by turns, and what ends the process alone is kept out. No process is needed for that."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

import pytest

from engine.builders import request, text_request
from octavo.core.grammar import Grammar
from octavo.core.images import Image
from octavo.core.request import GenerationRequest
from octavo.core.sampling import SamplingParams
from octavo.engine.worker.quarantine import Quarantine, Work, digest_of
from octavo.engine.worker.suspects import OUTLIVED
from octavo.errors import EngineUnavailable, RequestQuarantined

POISON, OTHER, THIRD, FOURTH = (text_request(text) for text in ("poison", "other", "third", "fourth"))
SLOTS = 8


def again(asked: GenerationRequest) -> GenerationRequest:
    """As a client sends it again: under another id, with another seed."""
    return replace(asked, id=request().id, sampling=replace(asked.sampling, seed=5), cache_key="other")


async def give(quarantine: Quarantine, *works: GenerationRequest) -> list[str]:
    """To the child, which computes them; their ids."""
    for work in works:
        async with quarantine.giving(work.id, work):
            pass
    return [work.id for work in works]


def die(quarantine: Quarantine) -> None:
    quarantine.blame(hung_step=False, num_slots=SLOTS)


async def died(*works: GenerationRequest) -> Quarantine:
    """After a death with this work."""
    quarantine = Quarantine()
    await give(quarantine, *works)
    die(quarantine)
    return quarantine


async def turns() -> None:
    """Of the loop, as many as anything takes that waits for nothing else."""
    for _ in range(10):
        await asyncio.sleep(0)


async def begin(quarantine: Quarantine, *works: GenerationRequest) -> list[asyncio.Task[list[str]]]:
    """Each as soon as it may."""
    tasks = [asyncio.create_task(give(quarantine, again(work))) for work in works]
    await turns()
    return tasks


def begun(tasks: Iterable[asyncio.Task[list[str]]]) -> list[bool]:
    return [task.done() for task in tasks]


async def refuses(quarantine: Quarantine, work: GenerationRequest) -> bool:
    try:
        await give(quarantine, again(work))
    except RequestQuarantined:
        return True
    return False


async def test_half_of_the_suspects_are_computed_together_and_others_do_not_wait() -> None:
    quarantine = await died(POISON, OTHER, THIRD, FOURTH)
    tasks = await begin(quarantine, POISON, OTHER, THIRD, text_request("new"))
    assert begun(tasks) == [True, True, False, True]
    die(quarantine)  # of the first two
    [third] = tasks[2:3]
    await third  # is let in, to be told
    die(quarantine)
    assert quarantine.num_found == 0


async def test_the_last_suspect_is_computed_alone_and_new_ones_wait() -> None:
    quarantine = await died(POISON, OTHER)
    [before] = await begin(quarantine, THIRD)
    poison, new = await begin(quarantine, POISON, FOURTH)
    assert begun([poison, new]) == [False, False]
    quarantine.finish(before.result()[0])
    await turns()
    assert begun([poison, new]) == [True, False]
    die(quarantine)
    await new
    assert quarantine.num_found == 1
    assert await refuses(quarantine, POISON)
    assert not await refuses(quarantine, OTHER)


async def test_a_last_suspect_that_has_waited_long_is_computed_beside_others_and_not_found() -> None:
    quarantine = Quarantine(patience=0.01)
    await give(quarantine, OTHER)
    die(quarantine)
    for _ in range(3):
        await give(quarantine, again(THIRD))
        await give(quarantine, again(OTHER))
        die(quarantine)
    assert quarantine.num_found == 0


@pytest.mark.parametrize("makes_way", ["ends", "goes on", "is given up"])
async def test_a_last_suspect_lets_others_in_when_it_can_be_the_cause_no_more(makes_way: str) -> None:
    quarantine = await died(POISON, OTHER)
    tasks = await begin(quarantine, OTHER, THIRD, POISON)
    assert begun(tasks) == [True, False, False]
    [key] = tasks[0].result()
    if makes_way == "ends":
        quarantine.finish(key)
    elif makes_way == "goes on":
        quarantine.advance(key, OUTLIVED + 1)
    else:
        quarantine.leave(key)
    await turns()
    assert tasks[1].done()
    tasks[2].cancel()


async def test_one_that_is_given_up_while_it_waits_to_be_alone_lets_others_in() -> None:
    quarantine = await died(OTHER)
    await give(quarantine, THIRD)
    suspect, new = await begin(quarantine, OTHER, FOURTH)
    suspect.cancel()
    await new


async def test_the_same_suspect_many_times_is_one() -> None:
    quarantine = await died(*(again(POISON) for _ in range(8)), OTHER)
    await give(quarantine, *(again(POISON) for _ in range(8)))
    die(quarantine)
    assert quarantine.num_found == 1


async def test_what_only_waited_for_a_slot_is_innocent() -> None:
    quarantine = Quarantine()
    running = [text_request(str(number)) for number in range(SLOTS)]
    quarantine.observe_running(frozenset(await give(quarantine, *running, OTHER)) - {OTHER.id})
    die(quarantine)
    tasks = await begin(quarantine, *running, *(OTHER for _ in range(SLOTS)))
    assert all(begun(tasks)[SLOTS:])


async def test_what_is_given_up_is_accused_as_long_as_the_child_may_compute_it() -> None:
    quarantine = Quarantine()
    [key] = await give(quarantine, POISON)
    quarantine.observe_running(frozenset({key}))
    quarantine.leave(key)
    die(quarantine)
    await give(quarantine, again(POISON))
    die(quarantine)
    assert quarantine.num_found == 1


async def test_what_is_given_up_and_out_of_its_slot_is_innocent() -> None:
    quarantine = Quarantine()
    [key] = await give(quarantine, POISON)
    quarantine.observe_running(frozenset({key}))
    quarantine.leave(key)
    quarantine.observe_running(frozenset())
    die(quarantine)
    await give(quarantine, again(POISON))
    die(quarantine)
    assert quarantine.num_found == 0


async def test_what_has_come_after_a_hung_step_began_is_innocent() -> None:
    quarantine = Quarantine()
    for _ in range(2):
        poison, other = again(POISON), again(OTHER)
        await give(quarantine, poison)
        quarantine.observe_step(1)
        later = asyncio.create_task(give(quarantine, other))
        await turns()
        quarantine.observe_running(frozenset({poison.id, other.id}))
        quarantine.blame(hung_step=True, num_slots=SLOTS)
        await later
        quarantine.finish(other.id)
    assert quarantine.num_found == 1
    assert await refuses(quarantine, POISON)


async def test_what_could_not_be_given_is_not_with_the_child() -> None:
    quarantine = Quarantine()
    with pytest.raises(EngineUnavailable):
        async with quarantine.giving(POISON.id, POISON):
            raise EngineUnavailable("It is restarting.")
    die(quarantine)
    await give(quarantine, again(POISON))
    die(quarantine)
    assert quarantine.num_found == 0


@pytest.mark.parametrize("work", [Image.of(b"bad picture"), ("a text", 3)])
async def test_images_and_texts_can_be_suspects_too(work: Work) -> None:
    quarantine = Quarantine()
    for _ in range(2):
        async with quarantine.giving(1, work):
            pass
        die(quarantine)
    with pytest.raises(RequestQuarantined):
        async with quarantine.giving(2, work):
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
