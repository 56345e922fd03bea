"""OpenTelemetry: a span for each request, made when the request is over, so that its way costs nothing.

Names follow OpenTelemetry's semantic conventions for HTTP servers and for generative models.
"""

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import version

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, format_trace_id, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from octavo.telemetry.report import Phases, RequestReport

Attributes = Mapping[str, str | int | float | bool | list[str]]

CLOSE_SECONDS = 1.5
"""For the last spans to be sent; a receiver that is gone must not hold up the end of the server."""
_LOG_INTERVAL = 60.0
_NOISY = ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.sdk._shared_internal")
"""Loggers that have something to say about every batch that is lost."""
_INDISCREET = ("opentelemetry.trace", "opentelemetry.util.re")
"""Loggers that repeat headers which they cannot read: those of clients, and those with the key for the receiver."""
_NANOSECONDS = 10**9

_OPERATIONS = {"/v1/chat/completions": "chat", "/v1/completions": "text_completion"}
_OTHER_NAMES = {"n": "choice.count"}
_CLIENT_CLOSED = 499


class Traces:
    """Sends spans in the background, some at a time; what does not fit into the queue is dropped.

    exporter: where they go. What else there is to choose is read from OpenTelemetry's variables, by its SDK.
    """

    def __init__(self, exporter: SpanExporter) -> None:
        for name in _NOISY:
            logging.getLogger(name).addFilter(_OnceInAWhile())
        self._provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("octavo", version("octavo"))
        self._propagator = TraceContextTextMapPropagator()

    @classmethod
    def to_receiver(cls) -> "Traces":
        """To the OTLP receiver that OTEL_EXPORTER_OTLP_… name. Raises ValueError for what these cannot be."""
        for name in _INDISCREET:
            logging.getLogger(name).setLevel(logging.ERROR)
        return cls(OTLPSpanExporter())

    def tell(self, report: RequestReport) -> str:
        """Make the span of a request, within the trace that its client has begun or in one of its own; returns the
        trace's id."""
        span = self._tracer.start_span(
            _name(report),
            self._propagator.extract(report.trace_context),
            SpanKind.SERVER,
            dict(_attributes(report)),
            start_time=_nanoseconds(report.started),
        )
        if span.is_recording():
            self._tell_phases(span, report)
        if report.status >= 500:
            span.set_status(Status(StatusCode.ERROR))
        span.end(_nanoseconds(report.started + report.seconds))
        return format_trace_id(span.get_span_context().trace_id)

    def close(self) -> None:
        """Send what is left, in CLOSE_SECONDS at most."""
        closing = threading.Thread(target=self._provider.shutdown, name="traces-close", daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)

    def _tell_phases(self, span: Span, report: RequestReport) -> None:
        context = set_span_in_context(span)
        for name, start, end in _phases(report.phases):
            child = self._tracer.start_span(name, context, start_time=_nanoseconds(report.started + start))
            child.end(_nanoseconds(report.started + end))


class _OnceInAWhile(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self._last = -_LOG_INTERVAL

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - self._last < _LOG_INTERVAL:
            return False
        self._last = now
        return True


def _resource() -> Resource:
    """What the variables say of this service; its name and version where they say nothing."""
    given = Resource.create()
    known = {SERVICE_NAME: "octavo", SERVICE_VERSION: version("octavo")}
    is_named = not str(given.attributes[SERVICE_NAME]).startswith("unknown_service")
    return given.merge(Resource({name: value for name, value in known.items() if name != SERVICE_NAME or not is_named}))


def _name(report: RequestReport) -> str:
    operation = _OPERATIONS.get(report.endpoint)
    if operation is None:
        return report.method if report.endpoint == "unmatched" else f"{report.method} {report.endpoint}"
    return f"{operation} {report.model}".rstrip()


def _attributes(report: RequestReport) -> Attributes:
    """Those that say something."""
    every = {**_http(report), **(_generation(report) if report.endpoint in _OPERATIONS else {})}
    return {name: value for name, value in every.items() if value not in ("", [])}


def _http(report: RequestReport) -> Attributes:
    host, port = report.server or ("", 0)
    return {
        "http.request.method": report.method,
        "http.response.status_code": report.status,
        "http.route": "" if report.endpoint == "unmatched" else report.endpoint,
        "server.address": host,
        **({"server.port": port} if host else {}),
        "error.type": _error_type(report),
        "octavo.request_id": report.id,
        "octavo.key_id": report.key_id,
        "octavo.user": report.user,
    }


def _error_type(report: RequestReport) -> str:
    return "client_closed" if report.status == _CLIENT_CLOSED else report.error_code


def _generation(report: RequestReport) -> Attributes:
    first_token, queue = report.phases.first_token, report.queue_seconds
    return {
        "gen_ai.operation.name": _OPERATIONS[report.endpoint],
        "gen_ai.provider.name": "octavo",
        "gen_ai.request.model": report.requested_model,
        **{f"gen_ai.request.{_OTHER_NAMES.get(name, name)}": value for name, value in report.parameters.items()},
        "gen_ai.response.id": report.answer_id,
        "gen_ai.response.model": report.model,
        "gen_ai.response.finish_reasons": list(report.finish_reasons),
        "gen_ai.usage.input_tokens": report.prompt_tokens,
        "gen_ai.usage.output_tokens": report.generated_tokens,
        "gen_ai.usage.cache_read.input_tokens": report.cached_tokens,
        **({} if first_token is None else {"gen_ai.server.time_to_first_token": first_token}),
        **({} if queue is None else {"octavo.queue_time": queue}),
    }


def _phases(phases: Phases) -> Iterator[tuple[str, float, float]]:
    """None where no token came: then it is not known how far it was."""
    admitted, computed, first_token, ended = phases.admitted, phases.computed, phases.first_token, phases.ended
    if admitted is None or computed is None or first_token is None or ended is None:
        return
    yield "queue", admitted, computed
    yield "prefill", computed, max(computed, first_token)
    yield "decode", first_token, ended


def _nanoseconds(seconds: float) -> int:
    return int(seconds * _NANOSECONDS)
