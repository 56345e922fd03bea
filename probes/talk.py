"""Requests whose answers are read to their end, whatever that is."""

import json
from dataclasses import dataclass
from typing import Any

import httpx

from probes.cases import COMPLETIONS

CUT = "cut"
"""The connection ended without an end of the answer."""
DONE = "done"
ERROR = "error"
REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Talk:
    """How a request ended: done, with an error (in its stream, or in place of it), refused before it began, or cut.

    finish_reasons: of its choices. id: of the answer. num_events: of its stream.
    """

    end: str
    status: int = 0
    code: str = ""
    id: str = ""
    finish_reasons: tuple[str, ...] = ()
    num_events: int = 0

    @property
    def is_answered(self) -> bool:
        return self.end != CUT


async def talk(client: httpx.AsyncClient, body: dict[str, Any], on_event: Any = None) -> Talk:
    """on_event: called at each event of a stream."""
    try:
        if not body.get("stream"):
            return _whole(await client.post(COMPLETIONS, json=body))
        async with client.stream("POST", COMPLETIONS, json=body) as response:
            if response.status_code != 200:
                await response.aread()
                return _whole(response)
            return await _streamed(response, on_event)
    except httpx.HTTPError:
        return Talk(CUT)


def _whole(response: httpx.Response) -> Talk:
    data = response.json()
    if response.status_code == 200:
        reasons = tuple(choice["finish_reason"] for choice in data["choices"])
        return Talk(DONE, 200, id=data["id"], finish_reasons=reasons)
    return Talk(REFUSED, response.status_code, data["error"]["code"])


async def _streamed(response: httpx.Response, on_event: Any) -> Talk:
    end, code, id, reasons, number = CUT, "", "", list[str](), 0
    try:
        async for line in response.aiter_lines():
            if line == "data: [DONE]":
                end = DONE
            elif line.startswith("data: "):
                number += 1
                event = json.loads(line[6:])
                if "error" in event:
                    end, code = ERROR, event["error"]["code"]
                    continue
                id = event["id"]
                reasons += [choice["finish_reason"] for choice in event["choices"] if choice["finish_reason"]]
                if on_event is not None:
                    on_event()
    except httpx.HTTPError:
        end = CUT
    return Talk(end, 200, code, id, tuple(reasons), number)
