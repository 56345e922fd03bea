"""Processes that are killed."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from support.checks import check_error, check_error_body
from support.processes import POLL_INTERVAL, Server, are_gone, eventually, serving

from .wire import Wire, ask, completion, event_of, num_running, text_of, until

NUM_STREAMS = 16
NUM_WHOLE = 4
ENDLESS = completion("The fox jumps", max_tokens=1000, ignore_eos=True)
"""The second kill has it quarantined, so no other test asks this."""
SHORT = completion("The fox", max_tokens=8)


async def stream(client: httpx.AsyncClient, has_begun: asyncio.Event) -> list[Wire]:
    """All events of an endless stream, which must not end as if all were well."""
    async with client.stream("POST", "/v1/completions", json={**ENDLESS, "stream": True}) as response:
        assert response.status_code == 200
        lines = []
        async for line in response.aiter_lines():
            lines.append(line)
            has_begun.set()
    assert "data: [DONE]" not in lines
    return [event_of(line) for line in lines if line]


@asynccontextmanager
async def watching(client: httpx.AsyncClient) -> AsyncIterator[dict[str, list[int]]]:
    """Ask for /health and /ready again and again; gives the statuses of each."""
    statuses: dict[str, list[int]] = {"/health": [], "/ready": []}

    async def watch() -> None:
        while True:
            for path, seen in statuses.items():
                seen.append((await client.get(path)).status_code)
            await asyncio.sleep(POLL_INTERVAL)

    task = asyncio.create_task(watch())
    try:
        yield statuses
    finally:
        task.cancel()
        await asyncio.wait({task})


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
async def test_a_killed_engine_ends_every_open_request_with_an_error_and_comes_back(
    server: Server, client: httpx.Client, async_client: httpx.AsyncClient, number: signal.Signals
) -> None:
    before = text_of(ask(client, SHORT))
    [engine] = server.children()
    begun = [asyncio.Event() for _ in range(NUM_STREAMS)]
    async with watching(async_client) as statuses:
        streams = [asyncio.create_task(stream(async_client, event)) for event in begun]
        whole = [asyncio.create_task(async_client.post("/v1/completions", json=ENDLESS)) for _ in range(NUM_WHOLE)]
        await asyncio.gather(*(event.wait() for event in begun))
        await until(async_client, "/metrics", lambda page: num_running(page.text) == NUM_STREAMS + NUM_WHOLE)
        engine.send_signal(number)
        ends, refusals = await asyncio.gather(*streams), await asyncio.gather(*whole)
        await until(async_client, "/ready", lambda page: page.status_code == 200)

    for events in ends:
        *tokens, error = events
        assert tokens
        assert all("error" not in event for event in tokens)
        assert check_error_body(error, 503)["code"] == "engine_died"
    for refusal in refusals:
        assert check_error(refusal, 503, None)["code"] == "engine_died"
    assert set(statuses["/health"]) == {200}
    assert statuses["/ready"][0] == 200
    assert 503 in statuses["/ready"]
    assert text_of(ask(client, SHORT)) == before
    assert server.is_running
    assert [child.pid for child in server.children()] != [engine.pid]
    assert are_gone([engine])


def test_the_engine_does_not_outlive_a_server_that_is_killed_while_it_works(tmp_path: Path) -> None:
    with serving("--scripted-delay", "0.05", folder=tmp_path) as server, server.wait_ready().client() as client:
        children = server.children()
        body = {**ENDLESS, "model": "scripted", "stream": True}
        with client.stream("POST", "/v1/completions", json=body) as response:
            next(response.iter_lines())
            server.kill()
            server.wait()

    assert children
    assert are_gone(children)


@pytest.mark.parametrize("is_loading", [False, True], ids=["as soon as it exists", "while it loads"])
def test_an_engine_that_is_not_ready_does_not_outlive_its_server(tmp_path: Path, is_loading: bool) -> None:
    with serving("--scripted-load-delay", "600", folder=tmp_path) as server:
        if is_loading:
            server.wait_for("Loading scripted")
        eventually(lambda: len(server.children()) == 1)
        children = server.children()
        server.kill()
        server.wait()

    assert are_gone(children)
