"""Spans, as a receiver gets them."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.proto.trace.v1.trace_pb2 import Status as SpanStatus

from octavo.config import wants_traces
from octavo.errors import ConfigError
from octavo.telemetry import Phases, RequestReport
from octavo.telemetry.traces import Traces
from support.otlp_receiver import Receiver, receiving, values_of
from support.ports import closed_port
from support.processes import run_octavo, serving

TRACE_ID, PARENT_ID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
VARIABLES = (
    *("OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"),
    *("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_SERVICE_NAME"),
)


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def report(**fields: Any) -> RequestReport:
    given = {
        "id": "req-1",
        "method": "POST",
        "endpoint": "/v1/chat/completions",
        "status": 200,
        "started": 1e9,
        "seconds": 4.0,
        "key_id": "key-1",
        "model": "smol",
        "requested_model": "smol:pirate",
        "answer_id": "chatcmpl-1",
        "parameters": {"max_tokens": 50, "temperature": 0.5, "n": 2, "stream": True},
        "prompt_tokens": 7,
        "generated_tokens": 30,
        "cached_tokens": 5,
        "phases": Phases(admitted=0.5, computed=1.0, first_token=2.0, ended=3.5),
        "finish_reasons": ["stop", "length"],
        "server": ("127.0.0.1", 8080),
    }
    return RequestReport(**(given | fields))


def told(receiver: Receiver, *reports: RequestReport) -> list[str]:
    """Tell of them, and wait until the receiver has it; the traces' ids."""
    traces = Traces(OTLPSpanExporter(f"{receiver.url}/v1/traces"))
    ids = [traces.tell(each) for each in reports]
    traces.close()
    return ids


def server_span(receiver: Receiver) -> Span:
    [span] = [span for span in receiver.spans if span.kind == Span.SPAN_KIND_SERVER]
    return span


def test_a_generation_is_a_span_with_what_was_asked_and_what_it_took(receiver: Receiver) -> None:
    [trace_id] = told(receiver, report())
    span = server_span(receiver)
    assert span.name == "chat smol"
    assert span.trace_id.hex() == trace_id
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (10**18, 10**18 + 4 * 10**9)
    assert values_of(span) == {
        "http.request.method": "POST",
        "http.response.status_code": 200,
        "http.route": "/v1/chat/completions",
        "server.address": "127.0.0.1",
        "server.port": 8080,
        "octavo.request_id": "req-1",
        "octavo.key_id": "key-1",
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "octavo",
        "gen_ai.request.model": "smol:pirate",
        "gen_ai.request.max_tokens": 50,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.choice.count": 2,
        "gen_ai.request.stream": True,
        "gen_ai.response.id": "chatcmpl-1",
        "gen_ai.response.model": "smol",
        "gen_ai.response.finish_reasons": ["stop", "length"],
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 30,
        "gen_ai.usage.cache_read.input_tokens": 5,
        "gen_ai.server.time_to_first_token": 2.0,
        "octavo.queue_time": 0.5,
    }


def test_its_phases_are_spans_within_it(receiver: Receiver) -> None:
    told(receiver, report())
    start = 10**18
    children = receiver.children_of(server_span(receiver))
    assert [(each.name, each.start_time_unix_nano - start, each.end_time_unix_nano - start) for each in children] == [
        ("queue", 5 * 10**8, 10**9),
        ("prefill", 10**9, 2 * 10**9),
        ("decode", 2 * 10**9, 35 * 10**8),
    ]


def test_the_trace_that_a_client_has_begun_goes_on(receiver: Receiver) -> None:
    context = {"traceparent": f"00-{TRACE_ID}-{PARENT_ID}-01", "tracestate": "vendor=1"}
    assert told(receiver, report(trace_context=context)) == [TRACE_ID]
    span = server_span(receiver)
    assert (span.trace_id.hex(), span.parent_span_id.hex(), span.trace_state) == (TRACE_ID, PARENT_ID, "vendor=1")


def test_what_a_client_does_not_sample_is_not_sent_and_still_has_its_id(receiver: Receiver) -> None:
    context = {"traceparent": f"00-{TRACE_ID}-{PARENT_ID}-00"}
    assert told(receiver, report(trace_context=context)) == [TRACE_ID]
    assert receiver.bodies == []


@pytest.mark.parametrize("traceparent", ["", "00-0-0-01", "\n", "x" * 10_000, f"00-{'0' * 32}-{PARENT_ID}-01"])
def test_a_context_that_is_none_begins_a_trace(receiver: Receiver, traceparent: str) -> None:
    [trace_id] = told(receiver, report(trace_context={"traceparent": traceparent}))
    assert re.fullmatch("[0-9a-f]{32}", trace_id)
    assert server_span(receiver).parent_span_id == b""


@pytest.mark.parametrize(
    ("status", "code", "is_error"),
    [(503, "overloaded", True), (404, "model_not_found", False), (499, "", False)],
)
def test_a_failure_is_told_by_its_code(receiver: Receiver, status: int, code: str, is_error: bool) -> None:
    told(receiver, report(status=status, error_code=code, model="", phases=Phases(), endpoint="/v1/completions"))
    span = server_span(receiver)
    assert span.name == "text_completion"
    assert values_of(span)["error.type"] == (code or "client_closed")
    assert (span.status.code == SpanStatus.STATUS_CODE_ERROR) == is_error
    assert receiver.children_of(span) == []


@pytest.mark.parametrize(("endpoint", "name"), [("/v1/models", "GET /v1/models"), ("unmatched", "GET")])
def test_other_requests_are_named_by_their_route(receiver: Receiver, endpoint: str, name: str) -> None:
    told(receiver, report(endpoint=endpoint, method="GET"))
    span = server_span(receiver)
    assert span.name == name
    assert not any(key.startswith("gen_ai.") for key in values_of(span))


@pytest.mark.parametrize(("given", "expected"), [(None, "octavo"), ("front", "front")])
def test_the_service_has_the_name_that_the_environment_gives_it(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, given: str | None, expected: str
) -> None:
    if given is not None:
        monkeypatch.setenv("OTEL_SERVICE_NAME", given)
    told(receiver, report())
    assert receiver.resource["service.name"] == expected
    assert receiver.resource["service.version"]


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, False),
        ({"OTEL_SDK_DISABLED": "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, False),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, True),
    ],
)
def test_the_environment_says_whether_there_are_traces(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], wanted: bool
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert wants_traces() == wanted


@pytest.mark.parametrize(
    ("name", "value"), [("OTEL_TRACES_EXPORTER", "console"), ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc")]
)
def test_what_cannot_be_done_is_an_error(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317")
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=f"{name} '{value}'"):
        wants_traces()


@pytest.mark.slow
def test_a_server_sends_spans_that_clients_ask_for_and_its_log_has_their_id(tmp_path: Path, receiver: Receiver) -> None:
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_BSP_SCHEDULE_DELAY": "600000"}
    with serving("--alias", "demo", folder=tmp_path, **variables) as server:
        server.wait_ready()
        with server.client() as client:
            body = {"model": "demo", "prompt": "A secret", "max_tokens": 3, "user": "ann@example.com"}
            headers = {"traceparent": f"00-{TRACE_ID}-{PARENT_ID}-01"}
            assert client.post("/v1/completions", json=body, headers=headers).status_code == 200
        server.send(signal.SIGTERM)
        assert server.wait() == 0
        span = receiver.wait_for("text_completion demo")  # sent at the end, or in ten minutes
        assert span.trace_id.hex() == TRACE_ID
        assert f"trace_id={TRACE_ID}" in server.log
    assert [child.name for child in receiver.children_of(span)] == ["queue", "prefill", "decode"]
    assert not any(name.startswith("GET") for name in (span.name for span in receiver.spans)), "probes are not told"
    for secret in (b"secret", b"ann@example.com"):
        assert not any(secret in body for body in receiver.bodies)


@pytest.mark.slow
def test_a_receiver_that_is_gone_disturbs_nobody(tmp_path: Path) -> None:
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{closed_port()}",
        "OTEL_BSP_SCHEDULE_DELAY": "10",
        "OTEL_BSP_MAX_QUEUE_SIZE": "8",
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "4",
    }
    with serving("--alias", "demo", folder=tmp_path, **variables) as server:
        server.wait_ready()
        with server.client() as client:
            for _ in range(50):
                body = {"model": "demo", "prompt": "x", "max_tokens": 1}
                assert client.post("/v1/completions", json=body).status_code == 200
        server.send(signal.SIGTERM)
        assert server.wait() == 0
    about_traces = [line for line in server.log.splitlines() if "span" in line.lower()]
    assert 1 <= len(about_traces) <= 4


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", b"'grpc': traces are sent by http/protobuf only."),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "3", b"variables (OTEL_\xe2\x80\xa6): max_export_batch_size must be"),
    ],
)
def test_what_traces_cannot_be_sent_with_ends_the_start(tmp_path: Path, name: str, value: str, message: bytes) -> None:
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317", name: value}
    result = run_octavo("serve", "--engine", "scripted", "--port", "0", folder=tmp_path, **variables)
    assert result.returncode == 2
    assert message in result.stderr
