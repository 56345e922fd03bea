"""Bodies that are not whole yet share memory."""

import asyncio

from octavo.api.body_budget import SMALL, BodyBudget

MOST = 4 * SMALL


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_bodies_beyond_the_budget_wait_and_the_oldest_goes_on() -> None:
    budget = BodyBudget(MOST)
    with budget.share() as oldest, budget.share() as younger:
        await oldest.grow(MOST)
        await oldest.grow(2 * MOST)
        waiting = asyncio.create_task(younger.grow(2 * SMALL))
        await settle()
        assert not waiting.done()
        await oldest.grow(3 * MOST)
        waiting.cancel()


async def test_a_body_goes_on_when_another_one_is_whole() -> None:
    budget = BodyBudget(MOST)
    with budget.share() as younger:
        with budget.share() as oldest:
            await oldest.grow(MOST)
            waiting = asyncio.create_task(younger.grow(2 * SMALL))
            await settle()
            assert not waiting.done()
        await waiting


async def test_small_bodies_are_never_held_up() -> None:
    budget = BodyBudget(MOST)
    with budget.share() as large, budget.share() as small:
        await large.grow(2 * MOST)
        await small.grow(SMALL)
