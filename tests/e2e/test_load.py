"""Many requests at a time, and more than there are slots."""

import asyncio

import httpx
import pytest

from .wire import NUM_SLOTS, Wire, completion, each_event, num_running, num_waiting, until

NUM_REQUESTS = 64


def request(number: int) -> Wire:
    """One of the 64; each asks for 8 to 39 tokens."""
    prompt = ("The fox", "Once upon a time there was", "def main():", "東京は")[number % 4]
    return completion(
        prompt, max_tokens=8 + number * 5 % 32, temperature=0.8, seed=number, ignore_eos=True, stream=number % 2 == 0
    )


async def count_tokens(client: httpx.AsyncClient, body: Wire) -> int:
    """Send it, and return what its usage says was generated."""
    if not body["stream"]:
        response = await client.post("/v1/completions", json=body)
        assert response.status_code == 200
        answer = response.json()
        assert answer["choices"][0]["finish_reason"] == "length"
        return int(answer["usage"]["completion_tokens"])
    asked = {**body, "stream_options": {"include_usage": True}}
    async with client.stream("POST", "/v1/completions", json=asked) as response:
        events = [event async for event in each_event(response)]
    assert events[-2]["choices"][0]["finish_reason"] == "length"
    return int(events[-1]["usage"]["completion_tokens"])


@pytest.mark.slow
async def test_64_requests_32_at_a_time_end_with_their_exact_token_counts(async_client: httpx.AsyncClient) -> None:
    gate = asyncio.Semaphore(32)

    async def send(body: Wire) -> int:
        async with gate:
            return await count_tokens(async_client, body)

    bodies = [request(number) for number in range(NUM_REQUESTS)]
    counts = await asyncio.gather(*map(send, bodies))
    assert counts == [body["max_tokens"] for body in bodies]


@pytest.mark.slow
async def test_the_same_64_requests_one_at_a_time_end_with_their_exact_token_counts(
    async_client: httpx.AsyncClient,
) -> None:
    bodies = [request(number) for number in range(NUM_REQUESTS)]
    assert [await count_tokens(async_client, body) for body in bodies] == [body["max_tokens"] for body in bodies]


async def test_40_requests_at_a_time_on_32_slots_end_with_their_exact_token_counts(
    async_client: httpx.AsyncClient,
) -> None:
    bodies = [{**request(number), "max_tokens": 4 + number % 8} for number in range(NUM_SLOTS + 8)]
    counts = await asyncio.gather(*(count_tokens(async_client, body) for body in bodies))
    assert counts == [body["max_tokens"] for body in bodies]


@pytest.mark.slow
async def test_requests_beyond_the_slots_wait_in_order(async_client: httpx.AsyncClient) -> None:
    begun: asyncio.Queue[int] = asyncio.Queue()

    async def stream(number: int, max_tokens: int) -> None:
        body = completion("The fox", max_tokens=max_tokens, ignore_eos=True, stream=True)
        async with async_client.stream("POST", "/v1/completions", json=body) as response:
            events = each_event(response)
            await anext(events)
            begun.put_nowait(number)
            assert [event async for event in events]

    async def until_waiting(number: int) -> None:
        wanted = (NUM_SLOTS, number)
        await until(async_client, "/metrics", lambda page: (num_running(page.text), num_waiting(page.text)) == wanted)

    endless = [asyncio.create_task(stream(-1, 1000)) for _ in range(NUM_SLOTS)]
    await until_waiting(0)
    waiting = []
    for number in range(8):
        waiting.append(asyncio.create_task(stream(number, 2)))
        await until_waiting(number + 1)
    assert [await begun.get() for _ in endless] == [-1] * NUM_SLOTS
    endless[0].cancel()  # one place becomes free, and all that wait go through it
    assert [await begun.get() for _ in waiting] == list(range(8))
    await asyncio.gather(*waiting)
    for task in endless:
        task.cancel()
    await asyncio.wait(endless)
