"""The one table from errors to statuses, and the one body that both families of clients read."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from octavo.api.linger import LingeringResponse
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
    Unauthenticated: ErrorKind(401, "authentication_error"),
    Forbidden: ErrorKind(403, "permission_error"),
    ModelNotFound: ErrorKind(404, "not_found_error"),
    LogEntryNotFound: ErrorKind(404, "not_found_error"),
    PathNotFound: ErrorKind(404, "not_found_error"),
    MethodNotAllowed: ErrorKind(405, "invalid_request_error"),
    BodyTooLarge: ErrorKind(413, "invalid_request_error"),
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


def error_body(error: OctavoError) -> dict[str, Any]:
    """The body of the error, as plain data."""
    kind = kind_of(error)
    fields = {"message": error.message[:_MAX_MESSAGE], "type": kind.type, "param": error.param, "code": error.code}
    body: dict[str, Any] = {"error": fields, "object": "error", **fields}
    if kind.status == 422:
        body["detail"] = _problems(error)
    return body


def error_response(error: OctavoError) -> Response:
    """The whole answer for an error that came before the first byte."""
    response = LingeringResponse if isinstance(error, BodyTooLarge) else Response
    return response(
        msgspec.json.encode(error_body(error)),
        status_code=kind_of(error).status,
        headers=_headers(error),
        media_type="application/json",
    )


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
