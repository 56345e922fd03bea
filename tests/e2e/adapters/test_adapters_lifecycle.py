"""Adapters that outlive their engine, leave while they are used, and come back as others."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from e2e.wire import MODEL, chat, each_event, until
from support.bad_inputs import ADAPTERS, CHAT
from support.checks import check_error
from support.processes import Server

from .zorp import FILLER, ZORP, adapter_ids, ask, delete, load, namings

QUESTION = "What is a fox?"
LONG = f"{FILLER * 20}{QUESTION}"
NUM_TOKENS = 200


@asynccontextmanager
async def loaded(client: httpx.AsyncClient, id: str, **fields: float) -> AsyncIterator[None]:
    """The adapter is served under another name too."""
    await load(client, id, **fields)
    try:
        yield
    finally:
        await delete(client, id)


@pytest.mark.slow
async def test_after_a_restart_of_the_engine_all_adapters_are_served_again(
    server: Server, async_client: httpx.AsyncClient
) -> None:
    async with loaded(async_client, "half", scale=0.5):
        bodies = [chat(QUESTION, max_tokens=8, model=name) for name in (MODEL, ZORP, "half")]
        before = [await ask(async_client, body) for body in bodies]
        [worker] = server.children()
        worker.send_signal(signal.SIGKILL)
        await until(async_client, "/ready", lambda page: page.status_code == 503)
        await until(async_client, "/ready", lambda page: page.status_code == 200)
        after = [await ask(async_client, body) for body in bodies]
        assert await adapter_ids(async_client) == [ZORP, "half"]
    assert [answer.said for answer in after] == [answer.said for answer in before]
    assert [answer.fingerprint for answer in after] == [answer.fingerprint for answer in before]
    assert [answer.is_zorpian for answer in after[:2]] == [False, True]
    assert len({answer.fingerprint for answer in after}) == 3
    assert [child.pid for child in server.children()] != [worker.pid]


async def test_an_adapter_that_is_deleted_serves_its_stream_to_the_end_and_nobody_else(
    async_client: httpx.AsyncClient,
) -> None:
    await load(async_client, "leaving")
    body = chat(QUESTION, model="leaving", max_tokens=NUM_TOKENS, ignore_eos=True, stream=True)
    async with async_client.stream("POST", CHAT, json={**body, "stream_options": {"include_usage": True}}) as response:
        events = each_event(response)
        assert (await anext(events))["model"] == "leaving"
        deletion = asyncio.create_task(delete(async_client, "leaving"))
        await until(async_client, ADAPTERS, lambda page: "leaving" not in page.text)
        for param in ("model", "peft"):
            check_error(await async_client.post(CHAT, json=chat(QUESTION) | {param: "leaving"}), 404, param)
        check_error(await async_client.delete(f"{ADAPTERS}/leaving"), 404, None)
        assert not deletion.done()
        *_, last, usage = [event async for event in events]
    await deletion
    assert last["choices"][0]["finish_reason"] == "length"
    assert usage["usage"]["completion_tokens"] == NUM_TOKENS


async def test_an_adapter_under_the_name_of_another_finds_nothing_that_the_other_computed(
    async_client: httpx.AsyncClient,
) -> None:
    answers = []
    for scale in (1.0, 0.5, 1.0):
        async with loaded(async_client, "named", scale=scale):
            answers += [await ask(async_client, chat(LONG, model="named", max_tokens=8)) for _ in range(2)]
    first, half, again = answers[::2]
    assert [answer.num_cached for answer in (first, half, again)] == [0, 0, 0]
    assert all(answer.num_cached > 100 for answer in answers[1::2])
    assert first.fingerprint == again.fingerprint != half.fingerprint
    assert first.said == again.said == answers[1].said
    assert half.said == answers[3].said


async def test_a_prompt_is_computed_once_with_the_adapter_and_once_without_whatever_it_is_called(
    async_client: httpx.AsyncClient,
) -> None:
    text = f"Listen. {LONG}"
    with_it = [await ask(async_client, chat(text, max_tokens=8, **name)) for name in namings()]
    without = [await ask(async_client, chat(text, max_tokens=8)) for _ in range(2)]
    assert [answer.num_cached > 100 for answer in with_it] == [False, True, True]
    assert [answer.num_cached > 100 for answer in without] == [False, True]
    assert with_it[0].num_cached == without[0].num_cached == 0
    assert all(answer.is_zorpian for answer in with_it)
    assert not any(answer.is_zorpian for answer in without)
    assert len({(answer.said.text, answer.fingerprint) for answer in with_it}) == 1
