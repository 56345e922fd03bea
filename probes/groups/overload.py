"""More than the server can do."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import httpx

from probes.answer import NO_ANSWER, Answer
from probes.bench import Bench
from probes.cases import COMPLETIONS, client_of
from probes.counts import Counts
from probes.measure import percentile
from probes.probe import Attack, Control, Drill, Group
from probes.target import MODEL, Target

KEYS = ("octv_a_key_that_floods_the_server_0123456789abcd", "octv_a_key_that_is_used_as_meant_0123456789abcde")
SLOW = '@script {"text": "The fox. The dog. ", "delay": 0.05}'
QUICK = '@script {"text": "The fox. The dog. ", "delay": 0.002}'
NUM_AT_ONCE = 10


def body_of(prompt: str, **fields: object) -> dict[str, object]:
    return {"model": MODEL, "prompt": prompt, "max_tokens": 8, "ignore_eos": True, **fields}


async def ask(client: httpx.AsyncClient, body: dict[str, object], seconds: list[float]) -> Answer:
    start = time.monotonic()
    try:
        answer = Answer.of(await client.post(COMPLETIONS, json=body))
    except httpx.HTTPError:
        return NO_ANSWER
    if answer.status != 200:
        seconds.append(time.monotonic() - start)
    return answer


async def full_queue(target: Target) -> Counts:
    """One place to run and one to wait, ten at once (F10): two are answered, eight are told when to come again."""
    counts, refusals = Counts(), list[float]()
    async with client_of(target) as client:
        for _ in range(target.sized(10)):
            answers = await asyncio.gather(*(ask(client, body_of(SLOW), refusals) for _ in range(NUM_AT_ONCE)))
            statuses = Counter(answer.status for answer in answers)
            counts.count("2 and 8", statuses == {200: 2, 503: 8}, str(dict(statuses)))
            for answer in answers:
                counts.judge("one of ten", answer, (200, 503))
                if answer.status == 503:
                    counts.count("told when", int(answer.headers.get("retry-after", 0)) >= 1)
    counts.figures["refused after, p99 ms"] = 1000 * percentile(refusals, 99)
    return counts


async def ten_times(target: Target) -> Counts:
    """Ten times what there are places for, for some seconds (F11): what is admitted is served, as much as before."""
    counts, refusals = Counts(), list[float]()
    seconds = 4 * min(1.0, target.scale)
    async with client_of(target) as client:
        usual = await _served(client, 4, seconds, counts, refusals)
        loaded = await _served(client, 40, seconds, counts, refusals)
    counts.figures["goodput of the usual"] = loaded / usual if usual else 0.0
    counts.figures["refused after, p99 ms"] = 1000 * percentile(refusals, 99)
    return counts


async def _served(
    client: httpx.AsyncClient, num_clients: int, seconds: float, counts: Counts, refusals: list[float]
) -> int:
    """How many were answered in so many seconds. Who is refused asks again after a tenth of a second."""
    num_served, end = 0, time.monotonic() + seconds

    async def work() -> None:
        nonlocal num_served
        while time.monotonic() < end:
            answer = await ask(client, body_of(QUICK), refusals)
            counts.judge("one of many", answer, (200, 503))
            num_served += answer.status == 200
            if answer.status != 200:
                await asyncio.sleep(0.1)

    await asyncio.gather(*(work() for _ in range(num_clients)))
    return num_served


async def flooding_key(target: Target) -> Counts:
    """A key beyond its own limits (A9): it is told so, and another one, the healthy client's, does not notice."""
    counts, refusals = Counts(), list[float]()
    async with client_of(target) as client:

        async def work() -> None:
            for _ in range(target.sized(20)):
                answer = await ask(client, body_of(QUICK), refusals)
                counts.judge("one of a flood", answer, (200, 429), secrets=KEYS)
                if answer.status == 429:
                    counts.count("told when", int(answer.headers.get("retry-after", 0)) >= 1)

        await asyncio.gather(*(work() for _ in range(16)))
    counts.count("some were refused", bool(refusals), "none")
    counts.figures["refused after, p99 ms"] = 1000 * percentile(refusals, 99)
    return counts


async def samples(target: Target) -> Counts:
    """A request of n samples takes n of the eight places (F10)."""
    counts, refusals = Counts(), list[float]()
    async with client_of(target) as client:
        for n in (1, 2, 4):
            answers = await asyncio.gather(*(ask(client, body_of(SLOW, n=n), refusals) for _ in range(NUM_AT_ONCE)))
            statuses = Counter(answer.status for answer in answers)
            counts.count(f"{n} samples", statuses == {200: 8 // n, 503: NUM_AT_ONCE - 8 // n}, str(dict(statuses)))
            for answer in answers:
                counts.judge(f"one with {n} samples", answer, (200, 503))
                if answer.status == 200:
                    counts.count("all choices", len(json.loads(answer.body)["choices"]) == n)
    return counts


def alone(attack: Callable[[Target], Coroutine[Any, Any, Counts]], *flags: str) -> Callable[[Bench], Counts]:
    """Without the healthy client, which would take a place."""

    def drill(bench: Bench) -> Counts:
        with bench.serving(*flags) as server:
            return asyncio.run(attack(bench.target(server)))

    return drill


GROUP = Group(
    "overload",
    (
        Drill("a full queue", alone(full_queue, "--slots", "1", "--max-queue-per-slot", "1")),
        Drill("samples", alone(samples, "--slots", "4", "--max-queue-per-slot", "1")),
        Drill("ten times as many", alone(ten_times, "--slots", "4", "--max-queue-per-slot", "1")),
        Attack("a flooding key", flooding_key, flags=("--key-concurrent", "2"), keys=KEYS),
    ),
    (
        Control("--max-queue-per-slot", "a full queue", ("--max-queue-per-slot", "100000")),
        Control("--key-concurrent", "a flooding key", ("--key-concurrent", "100000")),
    ),
)
