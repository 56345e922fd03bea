"""More than the server can do."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import httpx

from probes.answer import NO_ANSWER, Answer, exchange
from probes.bench import Bench
from probes.cases import COMPLETIONS, client_of
from probes.counts import Counts
from probes.measure import Ratio, percentile
from probes.probe import Attack, Control, Drill, Group
from probes.target import MODEL, Target

KEYS = ("octv_a_key_that_floods_the_server_0123456789abcd", "octv_a_key_that_is_used_as_meant_0123456789abcde")
SLOW = '@script {"text": "The fox. The dog. ", "delay": 0.05}'
STEADY = '@script {"text": "The fox. The dog. ", "delay": 0.02}'
QUICK = '@script {"text": "The fox. The dog. ", "delay": 0.002}'
NUM_AT_ONCE = 10
NUM_SLOTS = 4
NUM_PLACES = 2 * NUM_SLOTS
"""With one in the queue for each slot: as many are served or wait, and none is refused."""
PAUSE = 0.3
"""Seconds: with it, ten times as many clients as places send ten times what four slots take in their 8 x 0.02 s."""
KEY_REQUESTS = 5
KEY_TOKENS = 500
"""A minute: a server is done with all the requests of these probes before it gives more."""
REQUEST_TIMEOUT = 1.0
LOAD_SECONDS = 60.0
NUM_ROUNDS = 3
"""Enough to tell whether they agree; one at small scales, which judges no times."""
MIN_GOODPUT = 0.9
MAX_P99 = 1.5


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


@dataclass(slots=True)
class Load:
    """What became of many clients' requests. served: seconds that each one took that was answered."""

    served: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def goodput(self) -> float:
        """Answers a second."""
        return len(self.served) / self.seconds

    @property
    def p99(self) -> float:
        return percentile(self.served, 99)


async def ten_times(target: Target) -> Counts:
    """Ten times as many as there are places for, in rounds, beside as many (F11): a minute, or ten at scale 10.

    Who is admitted is served as soon, and as many are; both are judged where the rounds with as many agree.
    """
    counts, usual, loaded = Counts(), list[Load](), list[Load]()
    num_rounds = min(target.sized(NUM_ROUNDS), NUM_ROUNDS)
    seconds = LOAD_SECONDS * target.scale / num_rounds
    for _ in range(num_rounds):
        usual.append(await _loaded(target, NUM_PLACES, seconds / 4, counts))
        loaded.append(await _loaded(target, 10 * NUM_PLACES, seconds, counts))
    counts.count("some were refused", any(load.refused for load in loaded), "none")
    _judge_ratios(
        counts,
        Ratio.of([load.goodput for load in loaded], [load.goodput for load in usual]),
        Ratio.of([load.p99 for load in loaded], [load.p99 for load in usual]),
    )
    counts.figures["seconds under load"] = sum(load.seconds for load in loaded)
    counts.figures["refused after, p99 ms"] = 1000 * percentile([each for load in loaded for each in load.refused], 99)
    return counts


def _judge_ratios(counts: Counts, goodput: Ratio, p99: Ratio) -> None:
    counts.figures |= {"goodput of the usual": goodput.median, "p99 of the usual": p99.median}
    counts.figures |= {"goodput resolvable": goodput.is_resolvable, "p99 resolvable": p99.is_resolvable}
    if goodput.is_resolvable:
        counts.count("goodput", goodput.median >= MIN_GOODPUT, f"{goodput.median:.2f} of the usual")
    if p99.is_resolvable:
        counts.count("p99 of the admitted", p99.median <= MAX_P99, f"{p99.median:.2f} times the usual")


async def _loaded(target: Target, num_clients: int, seconds: float, counts: Counts) -> Load:
    """So many clients for so many seconds. Who is refused asks again after a while.

    Each request has a connection of its own: a client's pool of many would be slower than the server.
    """
    load, start, place = Load(), time.monotonic(), target.place
    body = json.dumps(body_of(STEADY)).encode()
    request = place.head(COMPLETIONS, f"content-length: {len(body)}") + body

    async def work(delay: float) -> None:
        await asyncio.sleep(delay)
        while time.monotonic() - start < seconds:
            asked = time.monotonic()
            answer = await exchange(place, request)
            counts.judge("one of many", answer, (200, 503))
            taken = time.monotonic() - asked
            if answer.status == 200:
                load.served.append(taken)
            else:
                load.refused.append(taken)
                await asyncio.sleep(PAUSE)

    await asyncio.gather(*(work(PAUSE * number / num_clients) for number in range(num_clients)))
    load.seconds = time.monotonic() - start
    return load


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


def limits_of_a_key(bench: Bench) -> Counts:
    """A key has so many requests and tokens a minute, is told so, and takes nothing from another's."""
    counts = Counts()
    with bench.serving("--key-requests", str(KEY_REQUESTS), keys=KEYS) as server:
        counts.add(asyncio.run(_requests_of_keys(bench.target(server, KEYS))))
    with bench.serving("--key-tokens", str(KEY_TOKENS), keys=KEYS) as server:
        counts.add(asyncio.run(_tokens_of_keys(bench.target(server, KEYS))))
    return counts


async def _requests_of_keys(target: Target) -> Counts:
    counts = Counts()
    for name, key in zip(("one key", "another"), KEYS, strict=True):
        async with client_of(Target(target.url, (key,))) as client:
            answers = await asyncio.gather(*(ask(client, body_of(QUICK), []) for _ in range(4 * KEY_REQUESTS)))
        statuses = Counter(answer.status for answer in answers)
        counts.count(name, statuses == {200: KEY_REQUESTS, 429: 3 * KEY_REQUESTS}, str(dict(statuses)))
        for answer in answers:
            counts.judge(f"of {name}", answer, (200, 429), secrets=KEYS)
            counts.count("the limit", answer.headers.get("x-ratelimit-limit-requests") == str(KEY_REQUESTS))
            counts.count("told when", answer.status == 200 or int(answer.headers.get("retry-after", 0)) >= 1)
    return counts


async def _tokens_of_keys(target: Target) -> Counts:
    """One after the other, until a prompt does not fit in what is left; an answer may take more than that."""
    counts = Counts()
    for name, key in zip(("one key", "another"), KEYS, strict=True):
        sizes, answer = list[int](), NO_ANSWER
        async with client_of(Target(target.url, (key,))) as client:
            for _ in range(KEY_TOKENS):
                answer = await ask(client, body_of(QUICK), [])
                if answer.status != 200:
                    break
                sizes.append(json.loads(answer.body)["usage"]["total_tokens"])
        counts.judge(f"the end of {name}", answer, (429,), secrets=KEYS)
        counts.count("told when", int(answer.headers.get("retry-after", 0)) >= 1)
        counts.count(name, abs(sum(sizes) - KEY_TOKENS) < 2 * max(sizes, default=0), f"{sizes} tokens of {KEY_TOKENS}")
    return counts


async def requests_that_take_long(target: Target) -> Counts:
    """They end at their time with what they have."""
    counts, taken = Counts(), list[float]()

    async def one(client: httpx.AsyncClient) -> None:
        start = time.monotonic()
        answer = await ask(client, body_of(SLOW, max_tokens=200), [])
        taken.append(time.monotonic() - start)
        counts.judge("one that takes long", answer, (200,))
        choices = json.loads(answer.body)["choices"] if answer.status == 200 else [{"finish_reason": "", "text": ""}]
        counts.count("cancelled", choices[0]["finish_reason"] == "cancelled", str(choices))
        counts.count("has its text", bool(choices[0]["text"]))

    async with client_of(target) as client:
        await asyncio.gather(*(one(client) for _ in range(NUM_PLACES)))
    counts.count("in time", max(taken) < REQUEST_TIMEOUT + 1, f"{max(taken):.1f} s")
    counts.figures["ended after, s"] = max(taken)
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
        Drill("ten times as many", alone(ten_times, "--slots", str(NUM_SLOTS), "--max-queue-per-slot", "1")),
        Drill("limits of a key", limits_of_a_key),
        Drill("a request's time", alone(requests_that_take_long, "--request-timeout", str(REQUEST_TIMEOUT))),
        Attack("a flooding key", flooding_key, flags=("--key-concurrent", "2"), keys=KEYS),
    ),
    (
        Control("--max-queue-per-slot", "a full queue", ("--max-queue-per-slot", "100000")),
        Control("--max-queue-per-slot: ten times", "ten times as many", ("--max-queue-per-slot", "100000")),
        Control("--key-requests", "limits of a key", ("--key-requests", "100000")),
        Control("--key-tokens", "limits of a key", ("--key-tokens", "100000000")),
        Control("--request-timeout", "a request's time", ("--request-timeout", "100000")),
        Control("--key-concurrent", "a flooding key", ("--key-concurrent", "100000")),
    ),
)
