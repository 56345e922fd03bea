"""Around every request: its id, its line in the log, its metrics, and the answer to faults that nobody foresaw."""

import logging
from time import perf_counter

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from octavo.api.errors import error_response, internal_error
from octavo.api.holds import holds_of
from octavo.api.record import RequestRecord, start_record
from octavo.telemetry import log_request
from octavo.telemetry.metrics import Metrics

_CLIENT_CLOSED = 499
"""Logged, never sent: there is nobody to send it to."""

_PROBES = frozenset({"/health", "/ready", "/metrics"})
"""Asked every few seconds by whoever watches the server; their lines would bury the others."""

_logger = logging.getLogger(__name__)


class Observe:
    """ASGI middleware, outside all others."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = perf_counter()
        record = start_record(scope, Headers(scope=scope).get("x-request-id"))
        try:
            await self._answer(record, scope, receive, send)
        finally:
            self._write(record, scope, perf_counter() - started)

    async def _answer(self, record: RequestRecord, scope: Scope, receive: Receive, send: Send) -> None:
        send_tagged = _tagging(record, send)
        try:
            with holds_of(scope):
                await self._app(scope, receive, send_tagged)
        except ClientDisconnect:
            record.status = _CLIENT_CLOSED
        except Exception:
            _logger.exception("request %s failed", record.id)
            if record.status:  # the answer has begun: only a broken connection can tell that it is not whole
                raise
            await error_response(internal_error())(scope, receive, send_tagged)

    def _write(self, record: RequestRecord, scope: Scope, seconds: float) -> None:
        endpoint = getattr(scope.get("route"), "path", "unmatched")
        status = record.status or _CLIENT_CLOSED  # cancelled before the first byte
        self._metrics.observe_request(endpoint, status, seconds)
        log_request(
            request_id=record.id,
            endpoint=endpoint,
            model=record.model,
            status=status,
            prompt_tokens=record.prompt_tokens,
            generated_tokens=record.generated_tokens,
            seconds=seconds,
            finish_reasons=record.finish_reasons,
            ignored_fields=record.ignored_fields,
            level=logging.DEBUG if endpoint in _PROBES else logging.INFO,
        )


def _tagging(record: RequestRecord, send: Send) -> Send:
    async def send_tagged(message: Message) -> None:
        if message["type"] == "http.response.start":
            record.status = message["status"]
            message["headers"] = [*message.get("headers", ()), *record.headers]
        await send(message)

    return send_tagged
