"""A client that goes away frees its place."""

import asyncio
import json
from typing import Any

import pytest

from support.bad_inputs import CHAT, COMPLETIONS

from .server import MODEL, App, listening, scripted

BODIES: dict[str, dict[str, Any]] = {
    COMPLETIONS: {"model": MODEL, "prompt": "x", "n": 3},
    CHAT: {"model": MODEL, "messages": [{"role": "user", "content": "x"}], "n": 3},
}


class Exchange:
    """One request spoken in ASGI, whose client can go away at any time and may stop reading.

    is_cut: the body never ends.
    """

    def __init__(self, path: str, body: dict[str, Any], *, is_cut: bool = False) -> None:
        content = json.dumps(body).encode()
        size = str(len(content)).encode()
        headers = [(b"host", b"octavo"), (b"content-type", b"application/json"), (b"content-length", size)]
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": headers,
            "client": None,
            "server": None,
        }
        self.sent: list[Any] = []
        self.gone = asyncio.Event()
        self.reading = asyncio.Event()
        self.reading.set()
        self._content: bytes | None = content
        self._is_cut = is_cut

    async def receive(self) -> dict[str, Any]:
        if self._content is not None:
            content, self._content = self._content, None
            return {"type": "http.request", "body": content, "more_body": self._is_cut}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        await self.reading.wait()
        self.sent.append(message)


async def run(app: App, exchange: Exchange) -> None:
    await app.asgi(exchange.scope, exchange.receive, exchange.send)


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("hang_at", [0, 3])
async def test_a_client_that_goes_away_ends_the_engines_streams(path: str, is_streamed: bool, hang_at: int) -> None:
    app = scripted(hang_at=hang_at)
    exchange = Exchange(path, {**BODIES[path], "stream": is_streamed})
    task = asyncio.create_task(run(app, exchange))
    await app.engine.wait_for_requests(3)
    if hang_at:
        await app.engine.started.wait()
    assert not task.done()
    exchange.gone.set()
    await task
    assert app.engine.num_open == 0
    assert bool(exchange.sent) == (is_streamed and hang_at > 0)


async def test_a_client_that_goes_away_while_it_sends_gets_no_answer(app: App) -> None:
    exchange = Exchange(COMPLETIONS, BODIES[COMPLETIONS], is_cut=True)
    exchange.gone.set()
    await run(app, exchange)
    assert not exchange.sent
    assert not app.engine.requests


async def test_a_client_that_waits_in_the_queue_may_go_away_too() -> None:
    app = scripted(num_slots=1, hang_at=0)
    exchanges = [Exchange(COMPLETIONS, {**BODIES[COMPLETIONS], "n": 1, "stream": True}) for _ in range(3)]
    tasks = [asyncio.create_task(run(app, exchange)) for exchange in exchanges]
    await app.engine.wait_for_requests(3)
    for exchange in exchanges:
        exchange.gone.set()
    await asyncio.gather(*tasks)
    assert app.engine.num_open == 0


async def test_a_client_that_does_not_read_stops_the_engine_and_can_still_go_away() -> None:
    app = scripted("x" * 100_000)
    exchange = Exchange(COMPLETIONS, {"model": MODEL, "prompt": "x", "stream": True, "max_tokens": 4000})
    exchange.reading.clear()
    task = asyncio.create_task(run(app, exchange))
    await app.engine.started.wait()
    for _ in range(1000):
        await asyncio.sleep(0)
    assert app.engine.num_open == 1
    assert not exchange.sent
    exchange.gone.set()
    await task
    assert app.engine.num_open == 0


@pytest.mark.parametrize("path", BODIES)
async def test_closing_a_real_stream_frees_the_engine(path: str) -> None:
    app = scripted(hang_at=2)
    async with listening(app) as client:
        for number in range(1, 6):
            app.engine.ended.clear()
            async with client.stream("POST", path, json={**BODIES[path], "stream": True}) as response:
                assert response.status_code == 200
                await anext(response.aiter_lines())
                assert app.engine.num_open == 3
            await asyncio.wait_for(app.engine.ended.wait(), 10)
            assert len(app.engine.requests) == 3 * number


@pytest.mark.parametrize("path", BODIES)
async def test_closing_a_real_connection_that_waits_for_a_whole_answer_frees_the_engine(path: str) -> None:
    app = scripted(hang_at=2)
    async with listening(app) as client:
        task = asyncio.create_task(client.post(path, json=BODIES[path]))
        await app.engine.started.wait()
        task.cancel()
        await asyncio.wait_for(app.engine.ended.wait(), 10)
    assert app.engine.num_open == 0
