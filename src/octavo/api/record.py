"""What is remembered of a request until its line is written to the log."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter
from uuid import uuid4

from starlette.requests import Request
from starlette.types import Scope

from octavo.core.output import TextEvent
from octavo.service import JobProgress
from octavo.telemetry.report import Parameter

_SCOPE_KEY = "octavo.record"
_SAFE_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_MAX_IGNORED_HEADER = 1000

CLIENT_CLOSED = 499
"""Logged, never sent: its client went away, or did not read and was left, or the server ended first."""


@dataclass(slots=True)
class RequestRecord:
    """id: on every answer as x-request-id. status: as logged; an error after the first byte of a stream changes it.

    key_id, user, answer_id, error_code: empty for none. progress: of the generation, where there is one.
    requested_model, parameters: what the client asked for, without what it said.
    """

    id: str
    key_id: str = ""
    status: int = 0
    user: str = ""
    model: str = ""
    requested_model: str = ""
    answer_id: str = ""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    prompt_tokens: int = 0
    generated_tokens: int = 0
    finish_reasons: list[str] = field(default_factory=list)
    ignored_fields: tuple[str, ...] = ()
    error_code: str = ""
    progress: JobProgress = field(default_factory=JobProgress)
    arrival: float = field(default_factory=perf_counter)

    def count(self, event: TextEvent) -> None:
        self.generated_tokens += event.num_tokens
        if event.finish_reason is not None:
            self.finish_reasons.append(event.finish_reason)

    @property
    def seconds(self) -> float:
        """Since it arrived."""
        return perf_counter() - self.arrival

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """What every answer to this request carries."""
        headers = [(b"x-request-id", self.id.encode())]
        if self.ignored_fields:
            headers.append((b"x-octavo-ignored", _joined(self.ignored_fields).encode()))
        return headers


def start_record(scope: Scope, given_id: str | None) -> RequestRecord:
    """A record for the request of `scope`, which keeps a client's own id where that is short and harmless."""
    is_safe = given_id is not None and _SAFE_ID.fullmatch(given_id) is not None
    record = RequestRecord(id=given_id if is_safe and given_id is not None else f"req-{uuid4().hex}")
    scope[_SCOPE_KEY] = record
    return record


def record_of(request: Request) -> RequestRecord:
    record = find_record(request.scope)
    assert record is not None
    return record


def find_record(scope: Scope) -> RequestRecord | None:
    """None for a request that failed before it had one."""
    record = scope.get(_SCOPE_KEY)
    assert record is None or isinstance(record, RequestRecord)
    return record


def _joined(names: tuple[str, ...]) -> str:
    text = ", ".join(names)
    if len(text) <= _MAX_IGNORED_HEADER:
        return text
    return text[: text.rindex(",", 0, _MAX_IGNORED_HEADER)] + ", ..."
