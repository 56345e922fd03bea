"""By what an operator finds a request again, and that watching breaks none."""

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from octavo.api.observe import Observe
from octavo.core.api_key import ApiKey, digest_of
from octavo.core.browser_access import AllowedOrigins
from octavo.core.caller import Caller, KeyLimits, Scope
from octavo.core.keyring import ClosedKeyring
from octavo.engine.specs import ScriptedSpec
from octavo.errors import EngineDied, EngineError, Overloaded
from octavo.telemetry import RequestReport, no_trace
from octavo.telemetry.metrics import Metrics
from support.checks import check_error, check_error_body

from .server import MODEL, App, WatchedEngine, build, scripted

COMPLETIONS = "/v1/completions"
BODY = {"model": MODEL, "prompt": "x"}
ADMIN, LIMITED, PAGE = "octv_admin", "octv_limited", "https://page.example"


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> "Lines":
    caplog.set_level(logging.DEBUG, "octavo.request")
    return Lines(caplog)


class Lines:
    """The fields of the requests' lines in the log."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog

    @property
    def last(self) -> dict[str, Any]:
        records = [record for record in self._caplog.records if record.name == "octavo.request"]
        fields: dict[str, Any] = vars(records[-1])["fields"]
        return fields


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "code"),
    [
        ("GET", "/nowhere", b"", {}, 404, "not_found"),
        ("PUT", COMPLETIONS, b"{}", {}, 405, "method_not_allowed"),
        ("POST", COMPLETIONS, b"x", {"content-type": "text/plain"}, 415, "unsupported_media_type"),
        ("POST", COMPLETIONS, b"x" * (8 * 2**20 + 1), {}, 413, "body_too_large"),
        ("POST", COMPLETIONS, b'{"model": "nobody", "prompt": "x"}', {}, 404, "model_not_found"),
        ("POST", COMPLETIONS, b"{}", {}, 422, "invalid_request"),
    ],
)
async def test_a_refusal_says_in_its_body_by_what_id_the_log_has_it(
    client: httpx.AsyncClient,
    lines: Lines,
    method: str,
    path: str,
    body: bytes,
    headers: dict[str, str],
    status: int,
    code: str,
) -> None:
    response = await client.request(method, path, content=body, headers={"content-type": "application/json", **headers})
    assert response.status_code == status
    told = check_error_body(response.json(), status)
    assert told["request_id"] == response.headers["x-request-id"] == lines.last["id"]
    assert told["code"] == lines.last["error"]
    assert lines.last["error"] == code


async def test_so_does_an_error_within_a_stream(lines: Lines) -> None:
    async with scripted(raise_at=2).client() as client:
        response = await client.post(COMPLETIONS, json={**BODY, "stream": True})
    [*_, last, rest] = response.text.split("\n\n")
    assert rest == ""
    told = check_error_body(json.loads(last.removeprefix("data: ")), 500)
    assert told["request_id"] == response.headers["x-request-id"] == lines.last["id"]
    assert (lines.last["status"], lines.last["error"]) == (500, "engine_error")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (Overloaded("full"), 503, "overloaded"),
        (EngineDied("gone"), 503, "engine_died"),
        (EngineError("no"), 500, "engine_error"),
        (RuntimeError("a fault of ours"), 500, "internal_error"),
    ],
)
async def test_and_whatever_an_engine_does(app: App, lines: Lines, error: Exception, status: int, code: str) -> None:
    app.engine.refusal = error
    async with app.client() as client:
        check_error(await client.post(COMPLETIONS, json=BODY), status, None)
    assert lines.last["error"] == code


async def test_a_server_that_is_not_ready_says_it_too(lines: Lines) -> None:
    app = scripted()
    app.engine.health_now = replace(app.engine.health(), state="loading")
    async with app.client() as client:
        response = await client.get("/ready")
    assert response.json()["request_id"] == response.headers["x-request-id"] == lines.last["id"]


async def test_the_line_says_how_long_a_request_waited_and_what_was_found_computed(
    client: httpx.AsyncClient, lines: Lines
) -> None:
    await client.post(COMPLETIONS, json={**BODY, "n": 3})
    line = lines.last
    assert 0 <= line["queue_seconds"] <= line["seconds_to_first_token"] <= line["seconds"]
    assert line["cached_tokens"] == 0
    await client.get("/v1/models")
    assert (lines.last["queue_seconds"], lines.last["seconds_to_first_token"], lines.last["user"]) == (None, None, "")


class BrokenHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise RuntimeError("no log today")


@pytest.fixture
def broken_log() -> Iterator[None]:
    root, handler = logging.getLogger("octavo"), BrokenHandler()
    root.addHandler(handler)
    yield
    root.removeHandler(handler)


@pytest.mark.usefixtures("broken_log")
@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_log_that_fails_breaks_no_answer(client: httpx.AsyncClient, is_streamed: bool) -> None:
    response = await client.post(COMPLETIONS, json={**BODY, "stream": is_streamed})
    assert response.status_code == 200
    assert not is_streamed or response.text.endswith("data: [DONE]\n\n")
    assert 'octavo_requests_total{endpoint="/v1/completions",status="200"} 1.0' in (await client.get("/metrics")).text


@pytest.mark.usefixtures("broken_log")
async def test_nor_does_it_hide_a_fault_from_its_client(app: App) -> None:
    app.engine.refusal = RuntimeError("a fault of ours")
    async with app.client() as client:
        check_error(await client.post(COMPLETIONS, json=BODY), 500, None)


class BrokenMetrics(Metrics):
    def observe_request(self, endpoint: str, status: int, seconds: float) -> None:
        raise RuntimeError("no metrics today")


def broken_trace(report: RequestReport) -> str:
    raise RuntimeError("no traces today")


@pytest.mark.parametrize("trace", [no_trace, broken_trace])
async def test_metrics_and_traces_that_fail_break_no_answer_and_no_line(
    app: App, lines: Lines, caplog: pytest.LogCaptureFixture, trace: Any
) -> None:
    watched = Observe(app.asgi, metrics=BrokenMetrics(CollectorRegistry()), trace=trace)
    transport = httpx.ASGITransport(watched)
    async with httpx.AsyncClient(transport=transport, base_url="http://octavo") as client:
        assert (await client.post(COMPLETIONS, json=BODY)).status_code == 200
    assert lines.last["status"] == 200
    assert "no metrics today" in caplog.text
    assert ("no traces today" in caplog.text) == (trace is broken_trace)


async def _limited() -> dict[bytes, ApiKey]:
    caller = Caller("key-l", frozenset({Scope.GENERATE}), KeyLimits(concurrent=0))
    return {digest_of(LIMITED): ApiKey(digest_of(LIMITED), caller)}


def guarded() -> App:
    """ADMIN may all, LIMITED may generate, but nothing at a time; pages of PAGE may ask."""
    keyring = ClosedKeyring([ADMIN], _limited)
    return build(WatchedEngine(ScriptedSpec()), keyring=keyring, origins=AllowedOrigins([PAGE]))


REFUSALS: list[tuple[str, str, dict[str, str], int, str]] = [
    ("POST", COMPLETIONS, {}, 401, COMPLETIONS),
    ("POST", COMPLETIONS, {"authorization": "Bearer octv_wrong"}, 401, COMPLETIONS),
    ("POST", "/v1/chat/completions", {"authorization": f"Bearer {LIMITED}"}, 429, "/v1/chat/completions"),
    ("GET", "/v1/logs/secret-id", {"authorization": f"Bearer {LIMITED}"}, 403, "/v1/logs/{id}"),
    ("DELETE", "/v1/adapters/some/one", {}, 401, "/v1/adapters/{id:path}"),
    ("GET", "/metrics", {}, 401, "/metrics"),
    ("POST", COMPLETIONS, {"origin": "https://elsewhere.example"}, 403, COMPLETIONS),
    ("POST", COMPLETIONS, {"host": "another.example"}, 403, COMPLETIONS),
    ("OPTIONS", COMPLETIONS, {"origin": PAGE, "access-control-request-method": "POST"}, 204, COMPLETIONS),
    ("POST", COMPLETIONS, {"authorization": f"Bearer {ADMIN}", "content-type": "text/plain"}, 415, COMPLETIONS),
    ("POST", COMPLETIONS, {"authorization": f"Bearer {ADMIN}", "content-length": str(2**40)}, 413, COMPLETIONS),
    ("PUT", COMPLETIONS, {"authorization": f"Bearer {ADMIN}"}, 405, COMPLETIONS),
    ("PUT", COMPLETIONS, {}, 401, COMPLETIONS),
    ("HEAD", "/v1/models", {}, 401, "/v1/models"),
    ("POST", "/v1/completions/", {}, 401, "unmatched"),
    ("GET", "/nowhere/secret-id", {}, 401, "unmatched"),
    ("GET", "/nowhere/secret-id", {"authorization": f"Bearer {ADMIN}"}, 404, "unmatched"),
]


@pytest.mark.parametrize("root_path", ["", "/mounted", "/v1"])
@pytest.mark.parametrize(("method", "path", "headers", "status", "endpoint"), REFUSALS)
async def test_whoever_refuses_a_request_it_counts_for_the_route_that_it_is_for(
    lines: Lines, root_path: str, method: str, path: str, headers: dict[str, str], status: int, endpoint: str
) -> None:
    transport = httpx.ASGITransport(guarded().asgi, root_path=root_path)
    async with httpx.AsyncClient(transport=transport, base_url="http://octavo") as client:
        response = await client.request(method, root_path + path, headers=headers)
        assert response.status_code == status
        assert lines.last["endpoint"] == endpoint
        metrics = (await client.get(f"{root_path}/metrics", headers={"authorization": f"Bearer {ADMIN}"})).text
    assert f'octavo_requests_total{{endpoint="{endpoint}",status="{status}"}} 1.0' in metrics.splitlines()
    assert "secret-id" not in metrics


@pytest.mark.parametrize("path", ["/metrics", "/ready"])
async def test_a_wrong_key_is_told_also_where_a_probe_is_not(
    lines: Lines, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    def levels() -> list[int]:
        return [record.levelno for record in caplog.records if record.name == "octavo.request"]

    async with guarded().client() as client:
        await client.get(path, headers={"authorization": f"Bearer {ADMIN}"})
        await client.get(path, headers={"authorization": "Bearer octv_wrong"})
    assert levels() == [logging.DEBUG, logging.INFO]
    assert (lines.last["endpoint"], lines.last["status"]) == (path, 401)
