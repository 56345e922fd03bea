"""From what is remembered of a request to what is told of it."""

import time

from starlette.datastructures import Headers
from starlette.types import Scope

from octavo.api.path import route_of
from octavo.api.record import CLIENT_CLOSED, RequestRecord
from octavo.service import JobProgress
from octavo.telemetry import Phases, RequestReport
from octavo.telemetry.user_hash import user_hash

_TRACE_HEADERS = ("traceparent", "tracestate")


def report_of(record: RequestRecord, scope: Scope) -> RequestReport:
    """Of a request that is over now."""
    seconds = record.seconds
    return RequestReport(
        id=record.id,
        method=scope["method"],
        endpoint=getattr(route_of(scope), "path", "unmatched"),
        status=record.status or CLIENT_CLOSED,  # cancelled before the first byte
        started=time.time() - seconds,
        seconds=seconds,
        key_id=record.key_id,
        user=user_hash(record.user),
        model=record.model,
        requested_model=record.requested_model,
        answer_id=record.answer_id,
        parameters=record.parameters,
        prompt_tokens=record.prompt_tokens,
        generated_tokens=record.generated_tokens,
        cached_tokens=record.progress.num_cached,
        phases=_phases(record.progress, record.arrival),
        finish_reasons=record.finish_reasons,
        ignored_fields=record.ignored_fields,
        error_code=record.error_code,
        trace_context=_trace_context(Headers(scope=scope)),
        server=scope.get("server"),
    )


def _phases(progress: JobProgress, arrival: float) -> Phases:
    def since_arrival(moment: float | None) -> float | None:
        return None if moment is None else max(0.0, moment - arrival)

    return Phases(
        admitted=since_arrival(progress.admitted),
        computed=since_arrival(progress.computed),
        first_token=since_arrival(progress.first_token),
        ended=since_arrival(progress.ended),
    )


def _trace_context(headers: Headers) -> dict[str, str]:
    return {name: headers[name] for name in _TRACE_HEADERS if name in headers}
