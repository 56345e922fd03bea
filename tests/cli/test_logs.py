"""`octavo logs`: the operator's look into the prompt log."""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from octavo.core.log_entry import LogEntry
from octavo.store.prompt_log import PromptLog, Retention
from support.processes import OCTAVO, SECONDS, clean_environment, run_octavo
from support.prompt_logs import open_log

NASTY = "\x1b[31mred\nline\ttab\x9b"


def entry(number: int, **fields: Any) -> LogEntry:
    known: dict[str, Any] = {
        "id": f"cmpl-{number}",
        "request_id": f"req-{number}",
        "created": 1_700_000_000.0 + number,
        "key_id": "key-1",
        "user": "ann",
        "endpoint": "/v1/completions",
        "model": "demo",
        "status": 200,
        "request": '{\n "prompt": "hi\\nyou"\n}',
        "prompts": ("hi\nyou",),
        "answer": '{"choices":[]}',
        "finish_reasons": ("stop",),
        "prompt_tokens": 3,
        "completion_tokens": 4,
        "cached_tokens": 1,
        "seconds": 0.5,
        "seconds_to_first_token": 0.25,
    }
    return LogEntry(**(known | fields))


ENTRIES = (
    entry(0),
    entry(1, user="", key_id="", status=499),
    entry(2, user=NASTY, model="m" * 100),
    entry(3, user="bob"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has a log with some rows."""
    folder = tmp_path_factory.mktemp("logs")

    async def fill() -> None:
        async with open_log(folder) as log:
            for each in ENTRIES:
                await log.append(each)

    asyncio.run(fill())
    return folder


def logs(folder: Path, *arguments: str) -> str:
    done = run_octavo("logs", *arguments, "--log-db", f"sqlite:///{folder / 'log.db'}", folder=folder)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def test_rows_are_listed_newest_first_in_columns(folder: Path) -> None:
    heading, *lines = logs(folder, "list").splitlines()
    assert heading.split() == ["time", "id", "user", "key", "model", "tokens", "status"]
    assert [line.split()[2] for line in lines] == ["cmpl-3", "cmpl-2", "cmpl-1", "cmpl-0"]
    assert lines[3].split()[3:] == ["ann", "key-1", "demo", "3+4", "200"]
    assert lines[2].split()[3:] == ["-", "-", "demo", "3+4", "499"]


def test_a_row_is_one_line_without_orders_for_the_terminal(folder: Path) -> None:
    table = logs(folder, "list")
    assert r"\x1b[31mred\nline\ttab\x9b" in table
    assert "m" * 39 + "…" in table
    assert not set(table) & {"\x1b", "\t", "\x9b"}


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        (("--limit", "1"), ["cmpl-3"]),
        (("--user", "ann"), ["cmpl-0"]),
        (("--key", "key-1", "--before", "cmpl-3"), ["cmpl-2", "cmpl-0"]),
        (("--model", "demo", "--until", "1700000001"), ["cmpl-0"]),
        (("--since", "1700000002.5"), ["cmpl-3"]),
        (("--since", "2023-11-14T22:13:21+00:00", "--until", "2023-11-14T22:13:22+00:00"), ["cmpl-1"]),
    ],
    ids=" ".join,
)
def test_rows_are_filtered(folder: Path, arguments: tuple[str, ...], ids: list[str]) -> None:
    _, *lines = logs(folder, "list", *arguments).splitlines()
    assert [line.split()[2] for line in lines] == ids


def test_where_no_row_fits_that_is_said(folder: Path) -> None:
    assert logs(folder, "list", "--user", "nobody") == "No rows of the prompt log fit.\n"


def test_a_row_is_shown_with_all_that_is_in_it(folder: Path) -> None:
    text = logs(folder, "show", "cmpl-0")
    assert text.startswith('{\n  "object": "log_entry",\n')
    row = json.loads(text)
    assert row["request"] == {"prompt": "hi\nyou"}
    assert (row["prompts"], row["answer"]) == (["hi\nyou"], {"choices": []})
    assert row["usage"]["total_tokens"] == 7


def test_an_export_has_a_row_a_line_the_oldest_first(folder: Path) -> None:
    rows = [json.loads(line) for line in logs(folder, "export").splitlines()]
    assert [row["id"] for row in rows] == [each.id for each in ENTRIES]
    assert rows[2]["user"] == NASTY
    some = [
        json.loads(line)["id"]
        for line in logs(folder, "export", "--since", "1700000001", "--until", "1700000003").splitlines()
    ]
    assert some == ["cmpl-1", "cmpl-2"]


def test_rows_that_wait_in_the_spool_are_told_beside_the_table(tmp_path: Path) -> None:
    url, spool = f"sqlite:///{tmp_path / 'log.db'}", tmp_path / "spool"

    async def leave() -> None:
        log = PromptLog(url, spool, 2**20, Retention())  # not started: nobody moves the row
        await log.append(entry(0))
        await log.close()

    asyncio.run(leave())
    for arguments, told in ((("list",), b"No rows of the prompt log fit.\n"), (("export",), b"")):
        done = run_octavo("logs", *arguments, "--log-db", url, "--log-spool", str(spool), folder=tmp_path)
        assert (done.returncode, done.stdout) == (0, told)
        assert done.stderr.startswith(b"octavo: rows wait for this database in the spool")
        assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("show", "cmpl-9"), 1, "cmpl-9"),
        (("list", "--before", "cmpl-9"), 1, "cmpl-9"),
        (("list", "--since", "soon"), 2, "--since 'soon': must be Unix seconds, or a date"),
        (("export", "--log-db", "none"), 2, "there is no prompt log"),
        (("list", "--log-db", "mysql://x/y"), 2, "mysql"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_what_cannot_be_done_is_said_in_a_line(
    folder: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    done = run_octavo("logs", *arguments, folder=folder, OCTAVO_LOG_DB=f"sqlite:///{folder / 'log.db'}")
    assert (done.returncode, done.stdout) == (code, b"")
    assert done.stderr.startswith(b"octavo: ")
    assert done.stderr.count(b"\n") == 1
    assert message in done.stderr.decode()


@pytest.fixture(scope="module")
def long_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has more than fits into a pipe."""
    folder = tmp_path_factory.mktemp("long")

    async def fill() -> None:
        async with open_log(folder) as log:
            for number in range(20):
                await log.append(entry(number, answer=json.dumps({"x": "y" * 40_000})))

    asyncio.run(fill())
    return folder


def test_a_reader_that_has_seen_enough_ends_an_export_without_a_word(long_log: Path) -> None:
    command = (OCTAVO, "logs", "export", "--log-db", f"sqlite:///{long_log / 'log.db'}")
    with subprocess.Popen(
        command, cwd=long_log, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b'{"object":"log_entry"')
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(SECONDS) == 0
