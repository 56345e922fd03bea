"""`--deterministic` with pictures: a request's answer has the same bits whatever else runs and was computed before."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import httpx
import pytest

from support.pictures import text_part
from support.processes import Server

from .tiny_vlm import (
    CHAT,
    COLOUR,
    COLOURS,
    NUM_TOKENS,
    answer_to,
    asking,
    connected,
    draw,
    num_cached,
    seeing,
)
from .wire import Wire, events_of

SEED = 40_000
SAMPLED: dict[str, Any] = {"temperature": 1.0, "seed": 5, "logprobs": True, "top_logprobs": 5}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with seeing("--deterministic", folder=tmp_path_factory.mktemp("deterministic")) as server:
        yield server


@pytest.fixture
async def client(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    async with connected(server) as client:
        yield client


async def choices_of(client: httpx.AsyncClient, bodies: Sequence[Wire]) -> list[list[Wire]]:
    return [answer["choices"] for answer in await asyncio.gather(*(answer_to(client, body) for body in bodies))]


async def test_what_is_found_computed_changes_no_bit(client: httpx.AsyncClient) -> None:
    pictures = [draw(SEED + i).part() for i in range(8)]
    body = asking(*pictures, text_part("Look at the images. " * 30), COLOURS, **SAMPLED)
    cold, warm = await answer_to(client, body), await answer_to(client, body)
    assert num_cached(cold) == 0
    assert num_cached(warm) >= 8 * NUM_TOKENS
    assert warm["choices"] == cold["choices"]


@pytest.mark.slow
async def test_neighbours_change_no_bit(client: httpx.AsyncClient) -> None:
    first, second = draw(SEED + 100), draw(SEED + 101)
    bodies = [
        asking(first.part(), text_part("Describe the image in detail."), **SAMPLED, n=2),
        asking(first.part(), second.part("JPEG"), COLOURS, **SAMPLED),
        asking(COLOUR, second.part("WEBP"), max_tokens=0, loglikelihood=True),
        asking(text_part("Tell me a story."), **SAMPLED, ignore_eos=True, min_tokens=32),
    ]
    alone = [(await answer_to(client, body))["choices"] for body in bodies]
    others = [
        asking(*[draw(SEED + 200 + 3 * i + j).part() for j in range(i % 4)], COLOUR, temperature=0.8, max_tokens=4 + i)
        for i in range(32)
    ]
    for _ in range(3):
        mixed = await choices_of(client, [*bodies, *others, *bodies])
        assert mixed[: len(bodies)] == mixed[-len(bodies) :] == alone


async def test_a_seed_gives_the_same_answers_again_and_another_seed_others(client: httpx.AsyncClient) -> None:
    body = asking(draw(SEED + 300).part(), COLOUR, **SAMPLED | {"temperature": 2.0}, n=4, ignore_eos=True)
    first, again, other = await choices_of(client, [body, body, body | {"seed": 6}])
    assert again == first
    assert other != first
    assert len({choice["message"]["content"] for choice in first}) > 1


async def test_a_stream_has_the_bits_of_the_whole_answer(client: httpx.AsyncClient) -> None:
    body = asking(draw(SEED + 400).part(), COLOUR, **SAMPLED)
    [choice] = (await answer_to(client, body))["choices"]
    events = events_of((await client.post(CHAT, json=body | {"stream": True})).text)
    pieces = [event["choices"][0] for event in events]
    assert "".join(piece["delta"].get("content") or "" for piece in pieces) == choice["message"]["content"]
    entries = [entry for piece in pieces for entry in (piece["logprobs"] or {"content": []})["content"]]
    assert entries == choice["logprobs"]["content"]
