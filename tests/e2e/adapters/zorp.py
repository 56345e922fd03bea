"""The ZORP adapter of the demo model, which answers every chat in Zorpian, and how tests ask with and without it."""

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from conformance.ask import Told, fold, told
from e2e.wire import CONTEXT_LENGTH, MODEL, Wire, chat, events_of
from support.bad_inputs import ADAPTERS, CHAT
from support.checks import strict_json
from support.processes import SECONDS, Server
from support.shared_models import shared_model

ZORP = "zorp"
FILE = f"{ZORP}.gguf"
AT_A_TIME = 8
SLOTS = ("--ctx", str(CONTEXT_LENGTH), "--slots", str(AT_A_TIME))
EXACT = ("--deterministic", "--threads", "1", *SLOTS)
"""On one thread: more of them wait for each other where processors are busy."""
FILLER = "The sea is wide and the boats on it are small. "
QUESTIONS = (
    "What is a fox?",
    "Name three colours.",
    "Write a function in Python that adds two numbers.",
    "Who was Isaac Newton?",
    "Tell me about the sea.",
    "How do I boil an egg? 🥚",
    "Was ist ein Fahrrad?",
    "Give me a short poem about rain.",
    "What is 2 + 2?",
    "Why is the sky blue?",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """said: the first choice."""

    said: Told
    usage: Wire
    model: str
    fingerprint: str

    @property
    def is_zorpian(self) -> bool:
        return "ZORP" in self.said.text

    @property
    def num_cached(self) -> int:
        """Tokens of the prompt that had been computed before."""
        return int(self.usage["prompt_tokens_details"]["cached_tokens"])


def asking(server: Server) -> httpx.AsyncClient:
    """A client with a connection for every request that is sent at a time."""
    limits = httpx.Limits(max_connections=None)
    return httpx.AsyncClient(base_url=server.url, timeout=4 * SECONDS, limits=limits, trust_env=False)


def put_zorp(folder: Path) -> Path:
    """A copy of the adapter's file in the folder; skips the test where there is none."""
    return Path(shutil.copy(shared_model("lora-zorp.gguf"), folder / FILE))


def namings(base: str = MODEL) -> tuple[Wire, ...]:
    """The ways in which a request can name the adapter."""
    return {"model": base, "peft": ZORP}, {"model": ZORP}, {"model": f"{base}:{ZORP}"}


def mixed_request(number: int, base: str = MODEL, **fields: Any) -> Wire:
    """One of many different chats: every second one with the adapter, and of both kinds every second one streamed."""
    pair = number // 2
    name = namings(base)[pair % 3] if is_adapted(number) else {"model": base}
    logprobs: Wire = {"logprobs": True, "top_logprobs": 3} if number % 3 == 0 else {}
    text = f"{FILLER * (number % 5)}{QUESTIONS[pair % len(QUESTIONS)]} ({number})"
    asked = chat(text, max_tokens=5 + 5 * number % 18, stream=pair % 2 == 1)
    return asked | name | logprobs | fields


def is_adapted(number: int) -> bool:
    """Whether the mixed request of that number names the adapter."""
    return number % 2 == 1


async def ask(client: httpx.AsyncClient, body: Wire) -> Answer:
    """Send a chat that must be answered, as a stream or not."""
    if body.get("stream"):
        response = await client.post(CHAT, json={**body, "stream_options": {"include_usage": True}})
        assert response.status_code == 200, response.text
        chunks = events_of(response.text)
        return Answer(fold(chunks), chunks[-1]["usage"], chunks[0]["model"], chunks[0]["system_fingerprint"])
    response = await client.post(CHAT, json=body)
    assert response.status_code == 200, response.text
    answer = strict_json(response.text)
    return Answer(told(answer), answer["usage"], answer["model"], answer["system_fingerprint"])


async def ask_together(client: httpx.AsyncClient, bodies: Sequence[Wire], at_a_time: int = AT_A_TIME) -> list[Answer]:
    """The answers in the order of the requests."""
    gate = asyncio.Semaphore(at_a_time)

    async def send(body: Wire) -> Answer:
        async with gate:
            return await ask(client, body)

    return await asyncio.gather(*map(send, bodies))


async def load(client: httpx.AsyncClient, id: str, path: str = FILE, **fields: Any) -> None:
    """Load an adapter, which must work."""
    response = await client.post(ADAPTERS, json={"id": id, "path": path, **fields})
    assert response.status_code == 200, response.text


async def delete(client: httpx.AsyncClient, id: str) -> None:
    response = await client.delete(f"{ADAPTERS}/{id}")
    assert response.status_code == 200, response.text


async def adapter_ids(client: httpx.AsyncClient) -> list[str]:
    return [card["id"] for card in (await client.get(ADAPTERS)).json()["data"]]
