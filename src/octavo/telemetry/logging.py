"""Log lines on stderr, for people or for machines, and the one line that each request leaves."""

import json
import logging
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from octavo.telemetry.report import RequestReport

_MAX_TEXT = 200
_MAX_ITEMS = 20

Value = str | int | float | None | Sequence[str]


def configure_logging(level: str, as_json: bool) -> None:
    """Send every log record of ours of at least `level` (a name of the logging module, in any case) to stderr.

    Of libraries' only warnings and errors: below those they tell what they are given, be it a prompt or a signed link.
    Replaces the handlers of an earlier call. as_json: one JSON object a line instead of text for people.
    Raises ValueError for an unknown level.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else HumanFormatter())
    ours = logging.getLogger("octavo")
    ours.setLevel(level.upper())
    logging.basicConfig(level=max(ours.level, logging.WARNING), handlers=[handler], force=True)


def log_request(report: RequestReport, *, trace_id: str = "", level: int = logging.INFO) -> None:
    """Leave one line about a request. It says what was asked of whom and how it went, never what was in it."""
    fields: dict[str, Value] = {
        "id": report.id,
        "key": report.key_id,
        "user": report.user,
        "endpoint": report.endpoint,
        "model": report.model,
        "status": report.status,
        "prompt_tokens": report.prompt_tokens,
        "generated_tokens": report.generated_tokens,
        "cached_tokens": report.cached_tokens,
        "seconds": _rounded(report.seconds),
        "seconds_to_first_token": _rounded(report.phases.first_token),
        "queue_seconds": _rounded(report.queue_seconds),
        "finish_reasons": list(report.finish_reasons),
        "ignored_fields": list(report.ignored_fields),
        "error": report.error_code,
        "trace_id": trace_id,
    }
    logging.getLogger("octavo.request").log(level, "request", extra={"fields": fields})


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, then the record's own fields."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Value] = {
            "time": _time_of(record).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line | _fields_of(record))


class HumanFormatter(logging.Formatter):
    """`time level message name=value …`; a field that is empty is left out."""

    def format(self, record: logging.LogRecord) -> str:
        time = _time_of(record).astimezone().strftime("%H:%M:%S")
        fields = (f" {name}={_readable(value)}" for name, value in _fields_of(record).items() if _is_said(value))
        line = f"{time} {record.levelname:<7} {record.getMessage()}{''.join(fields)}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def _time_of(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _fields_of(record: logging.LogRecord) -> dict[str, Value]:
    fields: Mapping[str, Value] = getattr(record, "fields", {})
    return {name: _shortened(value) for name, value in fields.items()}


def _shortened(value: Value) -> Value:
    """Field names and model names come from clients: they may be of any length."""
    if isinstance(value, str):
        return value if len(value) <= _MAX_TEXT else value[:_MAX_TEXT] + "…"
    if isinstance(value, Sequence):
        kept = [str(_shortened(item)) for item in value[:_MAX_ITEMS]]
        return kept if len(value) <= _MAX_ITEMS else [*kept, f"… and {len(value) - _MAX_ITEMS} more"]
    return value


def _is_said(value: Value) -> bool:
    return value is not None and value != "" and value != []


def _readable(value: Value) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(_readable, value))
    text = str(value)
    # Escaped where a client could forge a line, a field or a terminal sequence.
    is_plain = text.isascii() and text.isprintable() and not any(character in text for character in ' ",=')
    return text if is_plain else json.dumps(text)
