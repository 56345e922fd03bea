"""The one error body."""

from typing import Literal

from octavo.api.schemas.common import WireResponse


class ErrorFields(WireResponse):
    message: str
    type: str
    param: str | None
    code: str


class ValidationProblem(WireResponse):
    loc: list[str | int]
    msg: str
    type: str


class ErrorResponse(WireResponse):
    """`error` is what OpenAI's clients read, the fields beside it are what OctoAI's read. detail: on 422.

    request_id: as in the x-request-id header and in the server's log; absent where a request failed before it had one.
    """

    error: ErrorFields
    object: Literal["error"]
    message: str
    type: str
    param: str | None
    code: str
    request_id: str | None = None
    detail: list[ValidationProblem] | None = None


class ModelState(WireResponse):
    """progress: of loading, 0..1. message: what a person should know, empty when all is well."""

    id: str
    state: str
    progress: float
    message: str


class NotReadyResponse(ErrorResponse):
    models: list[ModelState]


class ReadyResponse(WireResponse):
    """degraded: every model serves, and the prompt log cannot be written, as `prompt_log` says; only requests with
    log_prompt may be refused, so the server is still good for traffic."""

    status: Literal["ok", "degraded"] = "ok"
    prompt_log: str = ""
    models: list[ModelState]


class HealthResponse(WireResponse):
    status: Literal["ok"] = "ok"
