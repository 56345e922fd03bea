"""Chats with the ZORP adapter and without it, together, on a server whose answers have the same bits in any company."""

import asyncio

import httpx
import pytest

from support.processes import Server, serving

from .zorp import EXACT, Answer, ask_together, asking, is_adapted, mixed_request

NUM_REQUESTS = 100
BODIES = tuple(mixed_request(number) for number in range(NUM_REQUESTS))
ADAPTED = [body for number, body in enumerate(BODIES) if is_adapted(number)]
PLAIN = [body for number, body in enumerate(BODIES) if not is_adapted(number)]


@pytest.fixture(scope="module")
def without_adapters(tmp_path_factory: pytest.TempPathFactory) -> list[Answer]:
    """The answers to the requests without an adapter, one at a time, of a server that has none."""
    with serving(*EXACT, engine="llama", folder=tmp_path_factory.mktemp("plain")) as server:
        return asyncio.run(answers_of(server.wait_ready()))


async def answers_of(server: Server) -> list[Answer]:
    async with asking(server) as client:
        return await ask_together(client, PLAIN, at_a_time=1)


@pytest.mark.slow
async def test_100_of_100_mixed_chats_are_answered_as_if_each_were_alone(
    server: Server, async_client: httpx.AsyncClient, without_adapters: list[Answer]
) -> None:
    answers = await ask_together(async_client, BODIES)
    adapted = [answer for number, answer in enumerate(answers) if is_adapted(number)]
    plain = [answer for number, answer in enumerate(answers) if not is_adapted(number)]

    assert [answer.is_zorpian for answer in answers] == [is_adapted(number) for number in range(NUM_REQUESTS)]
    assert [answer.said for answer in plain] == [answer.said for answer in without_adapters]
    assert [answer.fingerprint for answer in plain] == [answer.fingerprint for answer in without_adapters]
    alone = await ask_together(async_client, ADAPTED, at_a_time=1)
    assert [answer.said for answer in adapted] == [answer.said for answer in alone]
    assert len({answer.fingerprint for answer in answers}) == 2
