"""What the tests ask a server with the demo model, and how they read its answers."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import httpx

from octavo.cli.demo import find_demo_model
from support.checks import strict_json
from support.processes import POLL_INTERVAL

MODEL_FILE = find_demo_model()
MODEL = MODEL_FILE.name.removesuffix(".gguf")
CONTEXT_LENGTH = 1024
NUM_SLOTS = 32

Wire = dict[str, Any]


def completion(prompt: str, **fields: Any) -> Wire:
    """A greedy completion, unless the fields say otherwise."""
    return {"model": MODEL, "prompt": prompt, "temperature": 0, **fields}


def chat(text: str, **fields: Any) -> Wire:
    return {"model": MODEL, "messages": [{"role": "user", "content": text}], "temperature": 0, **fields}


def events_of(text: str) -> list[Wire]:
    """The events of a whole stream, which must have ended well."""
    *events, end, rest = text.split("\n\n")
    assert end == "data: [DONE]"
    assert rest == ""
    return [event_of(line) for line in events]


async def each_event(response: httpx.Response) -> AsyncIterator[Wire]:
    """The events as they come; how the stream ends is not looked at."""
    async for line in response.aiter_lines():
        if line and line != "data: [DONE]":
            yield event_of(line)


def event_of(line: str) -> Wire:
    """The event of one line of a stream."""
    assert line.startswith("data: ")
    event = strict_json(line.removeprefix("data: "))
    assert isinstance(event, dict)
    return event


def deltas(events: Iterable[Wire], index: int = 0) -> list[str]:
    """The pieces of a streamed completion's text, one for each event of that choice."""
    return [choice["text"] for event in events for choice in event["choices"] if choice["index"] == index]


def ask(client: httpx.Client, body: Wire) -> Wire:
    response = client.post("/v1/completions", json=body)
    assert response.status_code == 200, response.text
    answer = response.json()
    assert isinstance(answer, dict)
    return answer


def ask_streamed(client: httpx.Client, body: Wire) -> list[Wire]:
    response = client.post("/v1/completions", json={**body, "stream": True})
    assert response.status_code == 200, response.text
    return events_of(response.text)


def text_of(answer: Wire) -> str:
    return str(answer["choices"][0]["text"])


async def until(client: httpx.AsyncClient, path: str, holds: Callable[[httpx.Response], bool]) -> None:
    """Ask for a page until it is as wanted."""
    while True:
        if holds(await client.get(path)):
            return
        await asyncio.sleep(POLL_INTERVAL)


def num_running(metrics: str) -> int:
    """Sequences in slots, by the text of /metrics."""
    return _gauge(metrics, "octavo_requests_running")


def num_waiting(metrics: str) -> int:
    """Sequences in the queue, by the text of /metrics."""
    return _gauge(metrics, "octavo_requests_waiting")


def _gauge(metrics: str, name: str) -> int:
    [line] = [line for line in metrics.splitlines() if line.startswith(f"{name}{{")]
    return int(float(line.rpartition(" ")[2]))
