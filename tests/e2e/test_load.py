"""Many requests at a time, and more than there are slots."""

import asyncio

import httpx
import pytest

from .wire import NUM_SLOTS, Wire, completion, deltas, each_event, num_running, num_waiting, until

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


@pytest.mark.slow
async def test_requests_beyond_the_slots_wait_in_order_and_all_end(async_client: httpx.AsyncClient) -> None:
    began: list[int] = []

    async def stream(number: int, max_tokens: int) -> int:
        body = completion("The fox", max_tokens=max_tokens, ignore_eos=True, stream=True)
        text = ""
        async with async_client.stream("POST", "/v1/completions", json=body) as response:
            async for event in each_event(response):
                if not text:
                    began.append(number)
                text += "".join(deltas([event]))
        return len(text)

    async def until_waiting(number: int) -> None:
        wanted = (NUM_SLOTS, number)
        await until(async_client, "/metrics", lambda page: (num_running(page.text), num_waiting(page.text)) == wanted)

    async with asyncio.TaskGroup() as group:
        # The slots become free one after the other, so that the order shows.
        tasks = [group.create_task(stream(number, 150 + 3 * number)) for number in range(NUM_SLOTS)]
        await until_waiting(0)
        for waiting in range(1, 9):
            tasks.append(group.create_task(stream(NUM_SLOTS + waiting, 8)))
            await until_waiting(waiting)

    assert all(task.result() > 0 for task in tasks)
    assert began[NUM_SLOTS:] == [NUM_SLOTS + waiting for waiting in range(1, 9)]
