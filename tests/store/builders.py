"""Entries and logs for tests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from octavo.core.log_entry import LogEntry
from octavo.store.prompt_log import LogQuery, PromptLog, Retention

ENTRY = LogEntry(
    id="",
    request_id="request-1",
    created=0.0,
    key_id="key-1",
    user="ann",
    endpoint="/v1/completions",
    model="scripted",
    status=200,
    request='{"prompt": "Hello"}',
    prompts=("Hello",),
    answer='{"choices": []}',
    finish_reasons=("stop",),
    prompt_tokens=1,
    completion_tokens=2,
    cached_tokens=0,
    seconds=0.25,
    seconds_to_first_token=0.125,
)


FOR_EVER = Retention()


def entry_id(number: int) -> str:
    return f"cmpl-{number:06}"


def make_entry(number: int, **fields: Any) -> LogEntry:
    """Entries with greater numbers are newer."""
    values = {name: getattr(ENTRY, name) for name in LogEntry.__struct_fields__}
    return LogEntry(**values | {"id": entry_id(number), "created": 1000.0 + number} | fields)


async def entries(log: PromptLog, query: LogQuery) -> list[LogEntry]:
    """All on one page."""
    return list((await log.page(query, max_bytes=2**30)).entries)


@asynccontextmanager
async def running_log(
    url: str, spool: Path, *, max_spool: int = 2**26, retention: Retention = FOR_EVER
) -> AsyncIterator[PromptLog]:
    log = PromptLog(url, spool, max_spool, retention)
    await log.start()
    try:
        yield log
    finally:
        await log.close()
