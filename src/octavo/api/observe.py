"""Around every request: its id, what is told of it, and the answer to faults that nobody foresaw."""

import logging

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from octavo.api.errors import error_body, error_response, internal_error
from octavo.api.event_bytes import sse_event
from octavo.api.holds import holds_of
from octavo.api.record import CLIENT_CLOSED, RequestRecord, start_record
from octavo.api.report import report_of
from octavo.core.delivery import is_delivered
from octavo.telemetry import Trace, log_request
from octavo.telemetry.contained import contained
from octavo.telemetry.metrics import Metrics

_PROBES = frozenset({"/health", "/ready", "/metrics"})
"""Asked every few seconds by whoever watches the server; their lines would bury the others. Who is refused is told."""

_logger = logging.getLogger(__name__)


class Observe:
    """ASGI middleware, outside all others."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, trace: Trace) -> None:
        self._app = app
        self._metrics = metrics
        self._trace = trace

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        record = start_record(scope, Headers(scope=scope).get("x-request-id"))
        try:
            await self._answer(record, scope, receive, send)
        finally:
            self._tell(record, scope)

    async def _answer(self, record: RequestRecord, scope: Scope, receive: Receive, send: Send) -> None:
        sending = _Sending(record, send)
        try:
            with holds_of(scope):
                await self._app(scope, receive, sending)
            if sending.is_over and record.status < 400 and not await is_delivered(scope):
                record.status = CLIENT_CLOSED
        except ClientDisconnect:
            record.status = CLIENT_CLOSED
        except Exception:
            with contained():
                _logger.exception("request %s failed", record.id)
            if not record.status:
                await error_response(internal_error())(scope, receive, sending)
            elif not sending.is_over:
                record.status = 500
                if not sending.has_events:
                    raise  # only a broken connection can tell that the answer is not whole
                await send({"type": "http.response.body", "body": sse_event(error_body(internal_error(), record.id))})

    def _tell(self, record: RequestRecord, scope: Scope) -> None:
        """Whatever cannot be told, the answer is sent and the others are told."""
        report, trace_id = report_of(record, scope), ""
        is_probe = report.endpoint in _PROBES and "route" in scope
        with contained():
            self._metrics.observe_request(report.endpoint, report.status, report.seconds)
        if not is_probe:
            with contained():
                trace_id = self._trace(report)
        with contained():
            log_request(report, trace_id=trace_id, level=logging.DEBUG if is_probe else logging.INFO)


class _Sending:
    """Sends an answer with the headers that each one has, and knows how far it has come."""

    def __init__(self, record: RequestRecord, send: Send) -> None:
        self.is_over = False
        self.has_events = False
        self._record = record
        self._send = send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._record.status = message["status"]
            headers = [*message.get("headers", ()), *self._record.headers]
            self.has_events = any(value.startswith(b"text/event-stream") for _, value in headers)
            message["headers"] = headers
        await self._send(message)
        self.is_over = message["type"] == "http.response.body" and not message.get("more_body", False)
