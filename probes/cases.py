"""Requests with the statuses that they may get, sent one after the other or a few at a time."""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import httpx

from probes.answer import NO_ANSWER, SECONDS, Answer
from probes.counts import Counts
from probes.target import Target
from support.bad_inputs import BadInput, send

JSON = {"content-type": "application/json"}
COMPLETIONS = "/v1/completions"
CHAT = "/v1/chat/completions"
ANY = "any field"


@dataclass(frozen=True, slots=True)
class Case:
    """param: the field that an error must name, or ANY. is_chunked: the body goes without its length."""

    name: str
    expected: tuple[int, ...]
    body: bytes = b""
    path: str = COMPLETIONS
    method: str = "POST"
    headers: dict[str, str] = field(default_factory=lambda: dict(JSON))
    param: str | None = ANY
    is_chunked: bool = False

    @classmethod
    def of(cls, bad: BadInput) -> "Case":
        return cls(
            bad.name, (bad.status,), bad.body, bad.path, bad.method, dict(bad.headers), bad.param, bad.is_chunked
        )

    @property
    def request(self) -> BadInput:
        return BadInput(
            self.name,
            self.expected[0],
            method=self.method,
            path=self.path,
            body=self.body,
            headers=self.headers,
            is_chunked=self.is_chunked,
        )


def asking(name: str, expected: tuple[int, ...], path: str = COMPLETIONS, /, **fields: Any) -> Case:
    """A case whose body is an object."""
    return Case(name, expected, json.dumps(fields).encode(), path)


def client_of(target: Target) -> httpx.AsyncClient:
    """With a connection for every request that is sent at a time, and a key where the server has some."""
    limits = httpx.Limits(max_connections=None)
    headers = target.headers
    return httpx.AsyncClient(base_url=target.url, timeout=SECONDS, limits=limits, headers=headers, trust_env=False)


async def send_all(target: Target, cases: Iterable[Case], at_a_time: int = 2) -> Counts:
    """Send them, and judge the answers."""
    counts, turns = Counts(), iter(cases)

    async def work(client: httpx.AsyncClient) -> None:
        for case in turns:
            answer = await ask(client, case)
            judge(counts, case, answer, target.keys)

    async with client_of(target) as client:
        await asyncio.gather(*(work(client) for _ in range(at_a_time)))
    return counts


async def ask(client: httpx.AsyncClient, case: Case) -> Answer:
    try:
        return Answer.of(await send(client, case.request))
    except httpx.HTTPError:
        return NO_ANSWER


def judge(counts: Counts, case: Case, answer: Answer, secrets: tuple[str, ...] = ()) -> None:
    if case.method == "HEAD":  # has no body to be judged
        counts.count(case.name, answer.status in case.expected, str(answer.status))
        return
    counts.judge(case.name, answer, case.expected, sent=case.body, secrets=secrets)
    if answer.status in case.expected and answer.status >= 400 and case.param != ANY:
        named = param_of(answer)
        if named != case.param:
            counts.num_right -= 1
            counts.find(f"{case.name}: names {named}, not {case.param}")


def param_of(answer: Answer) -> object:
    try:
        return json.loads(answer.body)["error"]["param"]
    except (ValueError, LookupError, TypeError):
        return None
