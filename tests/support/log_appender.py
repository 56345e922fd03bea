"""Appends to a prompt log without end, until it is killed: `python -m support.log_appender URL SPOOL NAME`.

It writes the id of each entry that is acknowledged, a line each.
"""

import asyncio
import itertools
import sys
import time
import zlib
from pathlib import Path

from octavo.core.log_entry import LogEntry
from octavo.store.prompt_log import PromptLog, Retention

NUM_AT_ONCE = 16
MAX_SPOOL = 2**30


def entry_of(entry_id: str) -> LogEntry:
    """Its texts tell whether they are whole."""
    return LogEntry(
        id=entry_id,
        request_id=entry_id,
        created=time.time(),
        key_id="",
        user="",
        endpoint="/v1/completions",
        model="scripted",
        status=200,
        request=text_of(entry_id),
        prompts=(entry_id,),
        answer=text_of(entry_id),
        finish_reasons=("stop",),
        prompt_tokens=1,
        completion_tokens=1,
        cached_tokens=0,
        seconds=0.0,
    )


def text_of(entry_id: str) -> str:
    return entry_id * (1 + zlib.crc32(entry_id.encode()) % 200)


async def append_for_ever(url: str, spool: Path, name: str) -> None:
    log = PromptLog(url, spool, MAX_SPOOL, Retention())
    await log.start()
    numbers = itertools.count()

    async def append() -> None:
        for number in numbers:
            entry = entry_of(f"{name}-{number:06}")
            await log.append(entry)
            print(entry.id, flush=True)

    await asyncio.gather(*(append() for _ in range(NUM_AT_ONCE)))


if __name__ == "__main__":
    asyncio.run(append_for_ever(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
