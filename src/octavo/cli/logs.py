"""`octavo logs`: the prompt log, out of its database; no server has to run."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeVar

import msgspec

from octavo.api.log_rows import log_row
from octavo.cli.prompt_log import build_prompt_log
from octavo.cli.table import table
from octavo.cli.terminal import until_pipe_breaks, write_error, write_text
from octavo.config import Settings
from octavo.core.log_entry import LogEntry
from octavo.errors import ConfigError
from octavo.store.prompt_log import LogQuery, PromptLog

HEADINGS = ("time", "id", "user", "key", "model", "tokens", "status")
MAX_CELL = 40

T = TypeVar("T")


def list_logs(settings: Settings, query: LogQuery) -> None:
    """Print a table, the newest first. Raises ConfigError, LogEntryNotFound and PromptLogUnavailable."""
    entries = _asked(settings, lambda log: log.summaries(query))
    with until_pipe_breaks():
        write_text(table([HEADINGS, *map(_cells, entries)]) if entries else "No rows of the prompt log fit.\n")


def show_log(settings: Settings, entry_id: str) -> None:
    """Print all of a row. Raises as list_logs does."""
    entry = _asked(settings, lambda log: log.entry(entry_id))
    with until_pipe_breaks():
        write_text(msgspec.json.format(_encoded(entry), indent=2) + "\n")


def export_logs(settings: Settings, since: float | None, until: float | None) -> None:
    """Print a JSON object a line, the oldest first. Raises as list_logs does."""

    async def export(log: PromptLog) -> None:
        async for entry in log.export(LogQuery(since=since, until=until)):
            write_text(f"{_encoded(entry)}\n")

    with until_pipe_breaks():
        _asked(settings, export)


def unix_time(text: str | None, *, flag: str) -> float | None:
    """Of seconds, or of a date with or without a time, here unless it names a zone. Raises ConfigError."""
    if text is None:
        return None
    try:
        return float(text) if text.replace(".", "", 1).isdigit() else datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            f"{flag} {text!r}: must be Unix seconds, or a date as in 2026-01-31 or 2026-01-31T12:00."
        ) from error


def _asked(settings: Settings, ask: Callable[[PromptLog], Awaitable[T]]) -> T:
    log = build_prompt_log(settings)
    if log is None:
        raise ConfigError("--log-db 'none': there is no prompt log.")

    async def answer() -> T:
        try:
            await _tell_unmoved(log)
            return await ask(log)
        finally:
            await log.close()

    return asyncio.run(answer())


async def _tell_unmoved(log: PromptLog) -> None:
    """Who reads the database alone would miss them."""
    try:
        if await log.has_unmoved():
            write_error("rows wait for this database in the spool, which a server with this log moves there.")
    except OSError as error:
        write_error(f"the spool, where rows may wait for this database, cannot be read: {error.strerror}.")


def _cells(entry: LogEntry) -> tuple[str, ...]:
    return (
        datetime.fromtimestamp(entry.created).strftime("%Y-%m-%d %H:%M:%S"),
        entry.id,
        _short(entry.user),
        _short(entry.key_id),
        _short(entry.model),
        f"{entry.prompt_tokens}+{entry.completion_tokens}",
        str(entry.status),
    )


def _short(text: str) -> str:
    return (text if len(text) <= MAX_CELL else f"{text[: MAX_CELL - 1]}…") or "-"


def _encoded(entry: LogEntry) -> str:
    return msgspec.json.encode(log_row(entry)).decode()
