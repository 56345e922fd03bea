"""A receiver of OpenTelemetry's traces (OTLP over HTTP)."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from support.processes import eventually


@dataclass
class Receiver:
    """url: for OTEL_EXPORTER_OTLP_ENDPOINT. bodies: all that was sent, as it was."""

    url: str
    bodies: list[bytes] = field(default_factory=list)

    @property
    def requests(self) -> list[ExportTraceServiceRequest]:
        return [ExportTraceServiceRequest.FromString(body) for body in tuple(self.bodies)]

    @property
    def spans(self) -> list[Span]:
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def resource(self) -> dict[str, Any]:
        return values_of(self.requests[0].resource_spans[0].resource)

    def wait_for(self, name: str) -> Span:
        """The first span of that name."""
        eventually(lambda: any(span.name == name for span in self.spans))
        return next(span for span in self.spans if span.name == name)

    def children_of(self, parent: Span) -> list[Span]:
        return [span for span in self.spans if span.parent_span_id == parent.span_id]


def values_of(told: Any) -> dict[str, Any]:
    """The attributes of a span or a resource."""
    return {attribute.key: _value(attribute.value) for attribute in told.attributes}


def _value(value: AnyValue) -> Any:
    if value.HasField("array_value"):
        return [_value(each) for each in value.array_value.values]
    return getattr(value, str(value.WhichOneof("value")))


@contextmanager
def receiving(status: int = 200) -> Iterator[Receiver]:
    """A receiver that answers with this status."""
    receiver = Receiver("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
