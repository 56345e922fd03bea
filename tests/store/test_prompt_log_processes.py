"""Prompt logs of other processes: what they acknowledged is stored, whatever becomes of them."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from store.builders import entry_id, make_entry, running_log
from support.log_appender import text_of
from support.log_databases import AnyDatabase

TESTS = Path(__file__).parents[1]
NUM_ROUNDS = 5
NUM_SERVERS = 2


def start(url: str, spool: Path, name: str) -> "subprocess.Popen[str]":
    command = (*heeding_modes(), sys.executable, "-m", "support.log_appender", url, str(spool), name)
    return subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE, text=True)


def heeding_modes() -> tuple[str, ...]:
    """In front of a command: root writes what it may not, unless that is taken from it."""
    return ("setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override") if os.geteuid() == 0 else ()


def killed(server: "subprocess.Popen[str]", num_lines: int) -> list[str]:
    """What it acknowledged until it was killed, which is somewhen after so many lines."""
    with server:
        assert server.stdout is not None
        first = [server.stdout.readline() for _ in range(num_lines)]
        server.kill()
        rest = server.stdout.readlines()
    return [line.strip() for line in (*first, *rest) if line.endswith("\n")]


@pytest.mark.slow
async def test_kills_lose_no_row_that_was_acknowledged(database: AnyDatabase, tmp_path: Path) -> None:
    draw = random.Random(16)
    acknowledged: list[str] = []
    for number in range(NUM_ROUNDS):
        servers = [start(database.url, tmp_path / "spool", f"{number}-{each}") for each in range(NUM_SERVERS)]
        for server in servers:
            acknowledged += killed(server, draw.randrange(1, 500))

    async with running_log(database.url, tmp_path / "spool") as log:
        entries = [entry async for entry in log.export()]
        assert (log.status.num_waiting, log.status.num_set_aside) == (0, 0)

    stored = {entry.id for entry in entries}
    assert len(entries) == len(stored)
    assert len(acknowledged) > NUM_ROUNDS * NUM_SERVERS
    assert [each for each in acknowledged if each not in stored] == []
    assert all(entry.request == entry.answer == text_of(entry.id) for entry in entries)
    await database.check()


@pytest.mark.slow
async def test_rows_wait_for_a_database_that_can_only_be_read(database: AnyDatabase, tmp_path: Path) -> None:
    async with running_log(database.url, tmp_path / "spool") as log:
        await log.append(make_entry(0))
    async with database.read_only():
        acknowledged = killed(start(database.url, tmp_path / "spool", "a"), 100)
        assert await database.ids() == [entry_id(0)]

    async with running_log(database.url, tmp_path / "spool") as log:
        stored = {entry.id async for entry in log.export()}
    assert len(acknowledged) >= 100
    assert {*acknowledged} <= stored
