"""What the tests ask the application, and how they read its answers."""

from dataclasses import dataclass, field
from typing import Any

import httpx

from support.bad_inputs import CHAT, COMPLETIONS
from support.checks import strict_json

from .server import MODEL

BARE: dict[str, dict[str, Any]] = {
    COMPLETIONS: {"model": MODEL, "prompt": "x"},
    CHAT: {"model": MODEL, "messages": [{"role": "user", "content": "x"}]},
}
"""With nothing that need not be."""

BASES = {**BARE, COMPLETIONS: {**BARE[COMPLETIONS], "max_tokens": 1000}}
"""Answered to the end of the text."""

TRICKY = 'naïve 漢字かな交じり 🏳️‍🌈👩‍👩‍👧‍👦 e\u0301\u200d 𝔘𝔫𝔦 \u0000 " \\ \u2028 end'


async def complete(client: httpx.AsyncClient, **fields: Any) -> httpx.Response:
    return await client.post(COMPLETIONS, json={**BARE[COMPLETIONS], **fields})


async def chat(client: httpx.AsyncClient, *messages: dict[str, Any], **fields: Any) -> httpx.Response:
    return await client.post(CHAT, json={"model": MODEL, "messages": messages, **fields})


async def post(client: httpx.AsyncClient, path: str, **fields: Any) -> httpx.Response:
    return await client.post(path, json={**BASES[path], **fields})


async def ask(client: httpx.AsyncClient, path: str, **fields: Any) -> dict[str, Any]:
    """A whole answer."""
    response = await post(client, path, **fields)
    assert response.status_code == 200, response.text
    answer = strict_json(response.text)
    assert isinstance(answer, dict)
    return answer


async def stream(client: httpx.AsyncClient, path: str, **fields: Any) -> list[Any]:
    """The data of all events; the last one is [DONE] where the stream ended well."""
    response = await post(client, path, stream=True, **fields)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/event-stream"
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["x-accel-buffering"] == "no"
    *events, rest = response.text.split("\n\n")
    assert rest == ""
    assert all(event.startswith("data: ") and "\n" not in event for event in events)
    return [event[6:] if event == "data: [DONE]" else strict_json(event[6:]) for event in events]


def text_of(choice: dict[str, Any]) -> str:
    return choice["text"] if "text" in choice else (choice["delta"].get("content") or "")


def texts(body: dict[str, Any]) -> list[str]:
    return [choice["text"] if "text" in choice else choice["message"]["content"] for choice in body["choices"]]


@dataclass(slots=True)
class Folded:
    """A choice, whichever way it came.

    calls: id (empty in the older form), name and arguments of each. logprobs: each of its lists, where it has items.
    reasons: of each chunk.
    """

    text: str = ""
    reasoning: str = ""
    calls: list[list[str]] = field(default_factory=list)
    finish_reason: str | None = None
    logprobs: dict[str, list[Any]] = field(default_factory=dict)
    reasons: list[str | None] = field(default_factory=list, compare=False)

    def add(self, choice: dict[str, Any]) -> None:
        said = choice.get("message") or choice.get("delta") or {}
        assert said.get("reasoning_content") == said.get("reasoning")
        self.text += choice.get("text", said.get("content", "")) or ""
        self.reasoning += said.get("reasoning", "")
        for place, call in enumerate(said.get("tool_calls", ())):
            self._add_call(call.get("index", place), call.get("id", ""), call["function"])
        if "function_call" in said:
            self._add_call(0, "", said["function_call"])
        self.finish_reason = choice["finish_reason"]
        self.reasons.append(self.finish_reason)
        for name, items in (choice["logprobs"] or {}).items():
            if items:
                self.logprobs.setdefault(name, []).extend(items)

    def _add_call(self, index: int, id: str, function: dict[str, str]) -> None:
        if "name" in function:
            assert index == len(self.calls)
            self.calls.append([id, function["name"], ""])
        self.calls[index][2] += function["arguments"]


def folded(events: list[Any]) -> list[Folded]:
    """The choices of a stream that ended well, by index."""
    assert events[-1] == "[DONE]"
    return _folded([choice for event in events[:-1] for choice in event["choices"]])


def folded_whole(body: dict[str, Any]) -> list[Folded]:
    return _folded(body["choices"])


def _folded(choices: list[dict[str, Any]]) -> list[Folded]:
    by_index: dict[int, Folded] = {}
    for choice in choices:
        by_index.setdefault(choice["index"], Folded()).add(choice)
    assert sorted(by_index) == list(range(len(by_index)))
    return [by_index[index] for index in range(len(by_index))]
