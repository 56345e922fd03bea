"""`--deterministic`: a request's answer has the same bits whatever else runs."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from support.processes import SECONDS, Server, serving

from .wire import Wire, ask, completion, deltas, events_of

TEXT = "The history of the bicycle begins in the early nineteenth century, when inventors in Germany and France "
SEEDED = completion(TEXT * 4, temperature=1.0, seed=42, max_tokens=12, logprobs=3)
SCORED = SEEDED | {"echo": True}
NUM_OTHERS = 24


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("deterministic")
    with serving("--deterministic", "--ctx", "1024", "--slots", "32", engine="llama", folder=folder) as server:
        yield server.wait_ready()


@pytest.fixture(scope="module")
def cold(server: Server) -> Wire:
    """The answer when nothing has been computed yet."""
    with server.client() as client:
        return ask(client, SEEDED)


@pytest.fixture
async def async_client(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=server.url, timeout=4 * SECONDS, limits=limits, trust_env=False) as client:
        yield client


def test_a_warm_prefix_cache_changes_no_bit(server: Server, cold: Wire) -> None:
    with server.client() as client:
        warm = ask(client, SEEDED)
    assert cold["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert warm["usage"]["prompt_tokens_details"]["cached_tokens"] > 0
    assert warm["choices"] == cold["choices"]


def test_a_stream_has_the_bits_of_the_whole_answer(server: Server, cold: Wire) -> None:
    with server.client() as client:
        events = events_of(client.post("/v1/completions", json=SEEDED | {"stream": True}).text)
    [choice] = cold["choices"]
    content = [entry for event in events for entry in (event["choices"][0]["logprobs"] or {"content": []})["content"]]
    assert "".join(deltas(events)) == choice["text"]
    assert content == choice["logprobs"]["content"]


async def test_neighbours_change_no_bit(async_client: httpx.AsyncClient, server: Server, cold: Wire) -> None:
    with server.client() as client:
        scored = ask(client, SCORED)

    async def choices(body: Wire) -> list[Wire]:
        response = await async_client.post("/v1/completions", json=body)
        assert response.status_code == 200, response.text
        return list(response.json()["choices"])

    others = [
        completion(
            (TEXT * (i % 4) + f"{i} bells. " * i)[: 40 + 20 * i], max_tokens=4 + i % 9, temperature=0.8, n=1 + i % 2
        )
        for i in range(NUM_OTHERS)
    ]
    answers = await asyncio.gather(*map(choices, [SEEDED, *others, SEEDED, SCORED]))
    assert answers[0] == answers[-2] == cold["choices"]
    assert answers[-1] == scored["choices"]
