"""Faults between the server and what answers: what the client is told."""

import json
from collections.abc import Callable

import httpx
import pytest
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp, Receive, Scope, Send

from octavo.api.observe import Observe
from octavo.telemetry import no_trace
from octavo.telemetry.metrics import Metrics
from support.checks import check_error


class Fault(Exception):
    pass


def answering(media_type: bytes, *, fails_after: int) -> ASGIApp:
    """An application that sends its start and two pieces, and fails after so many messages."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        messages = [
            {"type": "http.response.start", "status": 200, "headers": [(b"content-type", media_type)]},
            {"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True},
            {"type": "http.response.body", "body": b"data: [DONE]\n\n", "more_body": False},
        ]
        for message in messages[:fails_after]:
            await send(message)
        raise Fault

    return app


@pytest.fixture
def client_of() -> Callable[[ASGIApp], httpx.AsyncClient]:
    def client(app: ASGIApp) -> httpx.AsyncClient:
        observed = Observe(app, metrics=Metrics(CollectorRegistry()), trace=no_trace)
        return httpx.AsyncClient(transport=httpx.ASGITransport(observed), base_url="http://octavo")

    return client


@pytest.mark.parametrize("media_type", [b"text/event-stream", b"application/json"])
async def test_a_fault_before_the_first_byte_has_the_one_shape(
    client_of: Callable[[ASGIApp], httpx.AsyncClient], media_type: bytes
) -> None:
    async with client_of(answering(media_type, fails_after=0)) as client:
        check_error(await client.get("/"), 500, None)


@pytest.mark.parametrize("fails_after", [1, 2])
async def test_a_fault_amid_events_is_the_last_event_and_no_done_follows(
    client_of: Callable[[ASGIApp], httpx.AsyncClient], fails_after: int
) -> None:
    async with client_of(answering(b"text/event-stream", fails_after=fails_after)) as client:
        response = await client.get("/")

    *before, last = response.text.removesuffix("\n\n").split("\n\n")
    assert before == ["data: 1"] * (fails_after - 1)
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "internal_error"


async def test_a_fault_amid_another_answer_breaks_its_connection_and_is_counted_as_one() -> None:
    registry = CollectorRegistry()
    observed = Observe(answering(b"application/json", fails_after=2), metrics=Metrics(registry), trace=no_trace)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(observed), base_url="http://octavo") as client:
        with pytest.raises(Fault):
            await client.get("/")
    assert registry.get_sample_value("octavo_requests_total", {"endpoint": "unmatched", "status": "500"}) == 1


@pytest.mark.parametrize("media_type", [b"text/event-stream", b"application/json"])
async def test_a_fault_after_the_answer_does_not_change_it(
    client_of: Callable[[ASGIApp], httpx.AsyncClient], media_type: bytes
) -> None:
    async with client_of(answering(media_type, fails_after=3)) as client:
        assert (await client.get("/")).text == "data: 1\n\ndata: [DONE]\n\n"
