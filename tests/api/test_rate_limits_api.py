"""What a key may use, and what it is told of that."""

import asyncio
from typing import Any

import httpx
import pytest
from starlette.types import Message

from octavo.api.rate_limits import duration
from octavo.core.caller import KeyLimits
from octavo.core.keyring import ClosedKeyring, OpenKeyring
from octavo.engine.specs import ScriptedSpec
from support.bad_inputs import CHAT, COMPLETIONS
from support.checks import check_error
from support.processes import SECONDS

from .asking import BARE
from .server import MODEL, App, WatchedEngine, build, listening

TEXT = "The quick brown fox."
A, B = {"authorization": "Bearer key-of-a"}, {"authorization": "Bearer key-of-b"}


def limited(*, has_keys: bool = True, text: str = TEXT, **limits: int) -> App:
    """The application of a server whose keys, or all that ask it, have these limits."""
    given = KeyLimits(**limits)
    keyring = ClosedKeyring(["key-of-a", "key-of-b"], default_limits=given) if has_keys else OpenKeyring(given)
    return build(WatchedEngine(ScriptedSpec(text=text)), keyring=keyring)


def told(response: httpx.Response, name: str) -> tuple[str, str, str]:
    """Limit, remaining and reset."""
    limit, remaining, reset = (
        response.headers[f"x-ratelimit-{part}-{name}"] for part in ("limit", "remaining", "reset")
    )
    return limit, remaining, reset


async def complete(client: httpx.AsyncClient, key: dict[str, str] | None = None, **fields: Any) -> httpx.Response:
    return await client.post(COMPLETIONS, json={**BARE[COMPLETIONS], **fields}, headers=key)


async def test_a_key_that_has_used_its_requests_is_refused_and_another_is_not() -> None:
    async with limited(requests=2).client() as client:
        for remaining in "10":
            answer = await complete(client, A)
            assert answer.status_code == 200
            assert told(answer, "requests")[:2] == ("2", remaining)
        refused = await complete(client, A)
        body = check_error(refused, 429, None)
        assert (body["code"], body["type"]) == ("rate_limit_exceeded", "rate_limit_error")
        assert "2 requests a minute" in body["message"]
        assert 1 <= int(refused.headers["retry-after"]) <= 30
        assert told(refused, "requests")[:2] == ("2", "0")
        assert (await complete(client, B)).status_code == 200


@pytest.mark.parametrize("path", [COMPLETIONS, CHAT, "/v1/tokenize", "/v1/detokenize", "/v1/adapters"])
async def test_every_endpoint_that_makes_work_counts_also_where_it_ends_in_an_error(path: str) -> None:
    async with limited(requests=1).client() as client:
        first = await client.post(path, json={}, headers=A)
        assert first.status_code in (403, 422)
        if first.status_code == 422:
            assert told(first, "requests")[:2] == ("1", "0")
            check_error(await client.post(path, json={}, headers=A), 429, None)


async def test_reading_costs_nothing_and_tells_what_remains() -> None:
    async with limited(requests=1, tokens=100).client() as client:
        for path in ("/v1/models", f"/v1/models/{MODEL}", "/v1/nothing"):
            answer = await client.get(path, headers=A)
            assert told(answer, "requests") == ("1", "1", "0s")
            assert told(answer, "tokens") == ("100", "100", "0s")
        assert (await complete(client, A)).status_code == 200
        refused = await complete(client, A)
        assert refused.status_code == 429
        assert (await client.get("/v1/models", headers=A)).status_code == 200


async def test_prompts_and_answers_are_paid_for_in_tokens_and_who_owes_some_begins_nothing() -> None:
    async with limited(tokens=20).client() as client:
        first = await complete(client, A, prompt="x" * 10, max_tokens=30, ignore_eos=True)
        assert first.status_code == 200, "what runs may end"
        assert first.json()["usage"]["total_tokens"] == 40
        refused = await complete(client, A)
        assert "20 tokens a minute" in check_error(refused, 429, None)["message"]
        assert told(refused, "tokens")[:2] == ("20", "0")
        assert 60 <= int(refused.headers["retry-after"]) <= 63
        assert (await client.get("/v1/models", headers=A)).headers["x-ratelimit-remaining-tokens"] == "0"
        assert (await complete(client, B)).status_code == 200


async def test_a_streamed_answer_takes_its_place_to_its_end() -> None:
    app = limited(concurrent=1, text="word " * 100)
    script = '@script {"hang_at": 3}'
    async with listening(app) as client:
        asked = {**BARE[COMPLETIONS], "prompt": script, "max_tokens": 100, "stream": True}
        async with client.stream("POST", COMPLETIONS, json=asked, headers=A) as streamed:
            assert streamed.status_code == 200
            refused = await complete(client, A)
            check_error(refused, 429, None)
            assert refused.headers["retry-after"] == "1"
            assert (await complete(client, B)).status_code == 200
        await app.engine.ended.wait()
        async with asyncio.timeout(SECONDS):
            answers = [await complete(client, A)]
            while answers[-1].status_code == 429:  # the server has yet to see that the client is gone
                answers.append(await complete(client, A))
        assert answers[-1].status_code == 200


async def test_a_refused_request_is_not_read() -> None:
    messages: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("it was read")

    async def send(message: Message) -> None:
        messages.append(message)

    app = limited(has_keys=False, requests=1)
    async with app.client() as client:
        await complete(client)
    headers = [(b"host", b"octavo"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "scheme": "http", "path": COMPLETIONS, "query_string": b""}
    await app.asgi({**scope, "headers": headers}, receive, send)
    assert messages[0]["status"] == 429


async def test_without_keys_all_that_ask_share_the_limits() -> None:
    async with limited(has_keys=False, requests=2).client() as client:
        statuses = [(await complete(client, headers)).status_code for headers in (A, B, {})]
    assert statuses == [200, 200, 429]


async def test_without_limits_nothing_is_told() -> None:
    async with limited().client() as client:
        response = await complete(client, A)
    assert not [name for name in response.headers if name.startswith("x-ratelimit")]


async def test_a_wrong_key_is_told_nothing_of_limits() -> None:
    async with limited(requests=1).client() as client:
        for _ in range(3):
            response = await complete(client, {"authorization": "Bearer another"})
            check_error(response, 401, None)
            assert not [name for name in response.headers if name.startswith("x-ratelimit")]


async def test_refusals_are_counted_by_limit() -> None:
    async with limited(has_keys=False, requests=1).client() as client:
        for _ in range(3):
            await complete(client)
        page = (await client.get("/metrics")).text
    assert 'octavo_rate_limited_total{limit="requests"} 2.0' in page


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0, "0s"), (0.0001, "1ms"), (0.02, "20ms"), (0.9999, "1s"), (1, "1s")),
        *((59.2, "1m0s"), (90, "1m30s"), (360, "6m0s"), (7200, "2h0m0s")),
    ],
)
def test_times_are_told_as_openai_tells_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text
