"""The one table from errors to statuses, and the one body that both families of clients read."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from octavo.api.linger import LingeringResponse
from octavo.api.record import find_record
from octavo.errors import (
    EngineUnavailable,
    Forbidden,
    InvalidRequest,
    LogEntryNotFound,
    ModelNotFound,
    OctavoError,
    Overloaded,
    RateLimited,
    Unauthenticated,
    UnsupportedByModel,
)

_MAX_MESSAGE = 1000
"""Characters; a message may repeat a name that the client sent."""


class UnsupportedMedia(OctavoError):
    """The body is not plain JSON."""

    code = "unsupported_media_type"


class BodyTooLarge(OctavoError):
    """The body has more bytes than this server reads."""

    code = "body_too_large"


class HostInvalid(OctavoError):
    """No Host header, several, or one that names no host."""

    code = "invalid_host"


class MalformedMessage(OctavoError):
    """The bytes are no HTTP request, or one that two programs could read in two ways."""

    code = "malformed_message"


class TargetTooLong(OctavoError):
    """The request line has more bytes than this server reads."""

    code = "target_too_long"


class HeadersTooLarge(OctavoError):
    """The headers have more bytes than this server reads, or there are too many."""

    code = "headers_too_large"


class RequestTooSlow(OctavoError):
    """The whole request has not come in time."""

    code = "request_too_slow"


class PathNotFound(OctavoError):
    """Nothing answers at this path."""

    code = "not_found"


class MethodNotAllowed(OctavoError):
    """The path answers to other methods: those of `allow`."""

    code = "method_not_allowed"

    def __init__(self, message: str, *, allow: str) -> None:
        super().__init__(message)
        self.allow = allow


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a request: where it is, what is wrong and a stable identifier."""

    loc: tuple[str | int, ...]
    msg: str
    type: str


class InvalidFields(InvalidRequest):
    """Fields that failed validation; `problems` has at least one entry, in the schema's order."""

    def __init__(self, message: str, *, param: str | None, problems: tuple[Problem, ...]) -> None:
        super().__init__(message, param=param)
        self.problems = problems


@dataclass(frozen=True, slots=True)
class ErrorKind:
    status: int
    type: str


KINDS: Mapping[type[OctavoError], ErrorKind] = {
    InvalidRequest: ErrorKind(422, "invalid_request_error"),
    UnsupportedByModel: ErrorKind(400, "invalid_request_error"),
    HostInvalid: ErrorKind(400, "invalid_request_error"),
    Unauthenticated: ErrorKind(401, "authentication_error"),
    Forbidden: ErrorKind(403, "permission_error"),
    ModelNotFound: ErrorKind(404, "not_found_error"),
    LogEntryNotFound: ErrorKind(404, "not_found_error"),
    PathNotFound: ErrorKind(404, "not_found_error"),
    MethodNotAllowed: ErrorKind(405, "invalid_request_error"),
    MalformedMessage: ErrorKind(400, "invalid_request_error"),
    RequestTooSlow: ErrorKind(408, "invalid_request_error"),  # clients try again; a connection that just ends says less
    BodyTooLarge: ErrorKind(413, "invalid_request_error"),
    TargetTooLong: ErrorKind(414, "invalid_request_error"),
    HeadersTooLarge: ErrorKind(431, "invalid_request_error"),
    UnsupportedMedia: ErrorKind(415, "invalid_request_error"),
    RateLimited: ErrorKind(429, "rate_limit_error"),
    Overloaded: ErrorKind(503, "overloaded_error"),
    EngineUnavailable: ErrorKind(503, "unavailable_error"),
    OctavoError: ErrorKind(500, "server_error"),
}
"""A class that is not listed has the kind of its nearest listed ancestor."""


def kind_of(error: OctavoError) -> ErrorKind:
    return next(KINDS[cls] for cls in type(error).__mro__ if cls in KINDS)


def internal_error() -> OctavoError:
    """What a client is told about a fault that the server did not foresee."""
    return OctavoError("The server failed on this request; its log says why.")


def error_body(error: OctavoError, request_id: str = "") -> dict[str, Any]:
    """The body of the error, as plain data. request_id: empty for what failed before it had one."""
    kind = kind_of(error)
    fields = {"message": error.message[:_MAX_MESSAGE], "type": kind.type, "param": error.param, "code": error.code}
    body: dict[str, Any] = {"error": fields, "object": "error", **fields}
    if request_id:
        body["request_id"] = request_id
    if kind.status == 422:
        body["detail"] = _problems(error)
    return body


def error_response(error: OctavoError, **beside: Any) -> Response:
    """The whole answer for an error that came before the first byte. beside: further fields of its body."""
    return _ErrorAnswer(error, beside)


class _ErrorAnswer(Response):
    """Tells the record of the request to which it is sent, and the client that request's id, where there is one."""

    def __init__(self, error: OctavoError, beside: Mapping[str, Any]) -> None:
        self._error = error
        self._beside = beside
        super().__init__(self._encoded(""), kind_of(error).status, _headers(error), "application/json")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        record = find_record(scope)
        if record is not None:
            record.error_code = self._error.code
        body = self._encoded(record.id if record is not None else "")
        response = LingeringResponse if isinstance(self._error, BodyTooLarge) else Response
        answer = response(body, self.status_code, _headers(self._error), self.media_type)
        await answer(scope, receive, send)

    def _encoded(self, request_id: str) -> bytes:
        return msgspec.json.encode({**error_body(self._error, request_id), **self._beside})


def record_error(scope: Scope, error: OctavoError) -> None:
    """Say in the record of a request how it is going to be answered, by others than its application."""
    record = find_record(scope)
    if record is not None:
        record.status, record.error_code = kind_of(error).status, error.code


async def handle_octavo_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, OctavoError)
    return error_response(error)


def _problems(error: OctavoError) -> tuple[Problem, ...]:
    if isinstance(error, InvalidFields):
        return error.problems
    loc = ("body",) if error.param is None else ("body", error.param)
    return (Problem(loc, error.message[:_MAX_MESSAGE], error.code),)


def _headers(error: OctavoError) -> dict[str, str]:
    if isinstance(error, Overloaded | EngineUnavailable | RateLimited):
        return {"retry-after": str(max(1, math.ceil(error.retry_after)))}
    if isinstance(error, Unauthenticated):
        return {"www-authenticate": "Bearer"}
    if isinstance(error, MethodNotAllowed):
        return {"allow": error.allow}
    if isinstance(error, BodyTooLarge):
        return {"connection": "close"}  # what is left of the body is not read
    return {}
