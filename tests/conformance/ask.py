"""Requests to a server, and their answers in one form, whether they were streamed or not."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import httpx

from conformance.calls import ToldCall, Wire, calls_of
from support.bad_inputs import CHAT, COMPLETIONS
from support.checks import check_error, strict_json

__all__ = ["CHAT", "COMPLETIONS", "Asker", "Told", "Wire", "fold", "said_by", "told"]


@dataclass(frozen=True, slots=True)
class Told:
    """One choice. logprobs: the lists of that field that are not empty, by name."""

    text: str
    reasoning: str
    calls: tuple[ToldCall, ...]
    finish_reason: str | None
    logprobs: dict[str, list[Any]]

    @property
    def entries(self) -> list[Wire]:
        return self.logprobs.get("content", [])

    @property
    def tokens(self) -> list[str]:
        return [entry["token"] for entry in self.entries]

    @property
    def entry_bytes(self) -> bytes:
        """What the entries add up to."""
        return b"".join(bytes(entry["bytes"] or ()) for entry in self.entries)


class Asker:
    """A client of one model. Without other fields, a request is greedy and its prompt ends with a colon."""

    def __init__(self, client: httpx.AsyncClient, model: str) -> None:
        self.client = client
        self._model = model

    def body(self, path: str, fields: Wire) -> Wire:
        prompt = {"prompt": "Say:"} if path == COMPLETIONS else {"messages": [{"role": "user", "content": "Speak."}]}
        return {"model": self._model, **prompt, "temperature": 0, **fields}

    async def send(self, path: str, **fields: Any) -> httpx.Response:
        return await self.client.post(path, json=self.body(path, fields))

    async def answer(self, path: str, **fields: Any) -> Wire:
        response = await self.send(path, **fields)
        assert response.status_code == 200, response.text
        answer = strict_json(response.text)
        assert isinstance(answer, dict)
        return answer

    async def chunks(self, path: str, **fields: Any) -> list[Wire]:
        """Of a stream that ended well."""
        response = await self.send(path, stream=True, **fields)
        assert response.status_code == 200, response.text
        *events, end, rest = response.text.split("\n\n")
        assert (end, rest) == ("data: [DONE]", "")
        return [strict_json(event.removeprefix("data: ")) for event in events]

    async def told(self, path: str, **fields: Any) -> Told:
        """The first choice, asked for both ways, which must not differ."""
        whole = told(await self.answer(path, **fields))
        assert fold(await self.chunks(path, **fields)) == whole
        return whole

    async def refused(self, path: str, status: int, param: str, **fields: Any) -> Wire:
        """The error, which must name the field."""
        return check_error(await self.send(path, **fields), status, param)


def told(answer: Wire, index: int = 0) -> Told:
    [choice] = [choice for choice in answer["choices"] if choice["index"] == index]
    return _joined([choice])


def fold(chunks: Iterable[Wire], index: int = 0) -> Told:
    """A choice of a stream, whose last chunk alone may say why it ended."""
    choices = [choice for chunk in chunks for choice in chunk["choices"] if choice["index"] == index]
    assert not any(choice["finish_reason"] is not None for choice in choices[:-1])
    return _joined(choices)


def _joined(choices: list[Wire]) -> Told:
    lists: dict[str, list[Any]] = {}
    for choice in choices:
        given = {name: values for name, values in (choice["logprobs"] or {}).items() if values}
        for name, values in given.items():
            lists.setdefault(name, []).extend(values)
    return Told(
        text="".join(map(said_by, choices)),
        reasoning="".join(str(_message(choice).get("reasoning_content") or "") for choice in choices),
        calls=calls_of(map(_message, choices)),
        finish_reason=choices[-1]["finish_reason"],
        logprobs=lists,
    )


def said_by(choice: Wire) -> str:
    """The text of a choice, or what a chunk adds to it."""
    return choice["text"] if "text" in choice else (_message(choice).get("content") or "")


def _message(choice: Wire) -> Wire:
    return choice.get("message") or choice.get("delta") or {}
