"""`octavo top`: what a running server does."""

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import httpx

from octavo.cli.client import CallFailed, ServerClient
from octavo.cli.metrics_page import Change, MetricsPage
from octavo.cli.terminal import write_text

if TYPE_CHECKING:
    from rich.table import Table

INTERVAL = 1.0
TIMEOUT = httpx.Timeout(10.0)
NOTHING = MetricsPage("")

Row = tuple[str, str]


def top(*, url: str, is_once: bool) -> None:
    """Show it, and then again every second, until Ctrl-C; once where that is asked for or nobody watches.

    The first numbers are those since the server's start. Raises CallFailed and ConfigError.
    """
    with ServerClient(url, timeout=TIMEOUT) as client:
        now = _page(client)
        rows = rows_of(Change(NOTHING, now, _seconds_since_start(now)))
        if is_once or not sys.stdout.isatty():
            write_text("".join(f"{name:<16}{value}\n" for name, value in rows))
        else:
            _watch(client, now, rows)


def rows_of(change: Change) -> list[Row]:
    """What is shown: states of the later page, and rates and times of what has happened since the earlier one."""
    return [*_requests(change), *_tokens(change), *_times(change), *_troubles(change), *_resources(change)]


def _watch(client: ServerClient, before: MetricsPage, rows: list[Row]) -> None:
    from rich.live import Live

    read = time.monotonic()
    try:
        with Live(_table(rows), auto_refresh=False, screen=True) as live:
            while True:
                time.sleep(INTERVAL)
                try:
                    now = _page(client)
                except CallFailed as error:  # it may be back in a moment
                    live.update(_table([("", error.message)]), refresh=True)
                    continue
                seconds = time.monotonic() - read
                live.update(_table(rows_of(Change(before, now, seconds))), refresh=True)
                before, read = now, read + seconds
    except KeyboardInterrupt:
        return


def _table(rows: list[Row]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for name, value in rows:
        table.add_row(Text(name, style="bold"), Text(value))
    return table


def _page(client: ServerClient) -> MetricsPage:
    return client.read("/metrics", MetricsPage)


def _seconds_since_start(page: MetricsPage) -> float:
    """0 where the server's system does not tell."""
    started = page.total("process_start_time_seconds")
    return max(0.0, time.time() - started) if started else 0.0


def _requests(change: Change) -> Iterator[Row]:
    now = change.now
    yield "running", f"{now.total('octavo_requests_running'):.0f}"
    yield "waiting", f"{now.total('octavo_requests_waiting'):.0f}"
    yield "ended", f"{change.per_second('octavo_choices_total'):.2f}/s"


def _tokens(change: Change) -> Iterator[Row]:
    prompt, cached = change.of("octavo_prompt_tokens_total"), change.of("octavo_cached_prompt_tokens_total")
    yield "prompt tokens", f"{change.per_second('octavo_prompt_tokens_total'):.1f}/s"
    yield "new tokens", f"{change.per_second('octavo_generation_tokens_total'):.1f}/s"
    yield "found computed", f"{min(1.0, cached / prompt):.0%} of prompt tokens" if prompt else "-"


def _times(change: Change) -> Iterator[Row]:
    yield "first token", _quantiles(change, "octavo_time_to_first_token_seconds")
    yield "between tokens", _quantiles(change, "octavo_time_per_output_token_seconds")
    yield "in the queue", _quantiles(change, "octavo_queue_time_seconds")


def _troubles(change: Change) -> Iterator[Row]:
    now = change.now
    yield "errors", f"{now.total('octavo_requests_total', status='5'):.0f} since the start"
    yield "rate-limited", f"{now.total('octavo_requests_total', status='429'):.0f} since the start"
    yield "engine restarts", f"{now.total('octavo_engine_restarts_total'):.0f} since the start"


def _resources(change: Change) -> Iterator[Row]:
    now = change.now
    saved, tokens = now.total("octavo_saved_prefixes"), now.total("octavo_saved_tokens")
    yield "KV cache", f"{now.total('octavo_kv_cache_usage_ratio'):.0%} used"
    yield "saved prefixes", f"{saved:.0f} ({tokens:.0f} tokens)"
    if "process_resident_memory_bytes" in now:
        yield "memory", f"{_mebibytes(change, 'process')} server, {_mebibytes(change, 'octavo_engine_process')} engine"
    if "octavo_prompt_log_waiting_rows" in now:
        state = ", DEGRADED" if now.total("octavo_prompt_log_degraded") else ""
        yield "prompt log", f"{now.total('octavo_prompt_log_waiting_rows'):.0f} waiting{state}"


def _mebibytes(change: Change, process: str) -> str:
    return f"{change.now.total(f'{process}_resident_memory_bytes') / 2**20:.0f} MiB"


def _quantiles(change: Change, name: str) -> str:
    half, most = (change.quantile(name, part) for part in (0.5, 0.95))
    return "-" if half is None or most is None else f"{_shown(half)} (95 %: {_shown(most)})"


def _shown(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
