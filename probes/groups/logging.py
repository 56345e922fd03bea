"""The whole server is killed while it logs; what a client was told is stored, is stored."""

import asyncio
import json
import random
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from probes.bench import Bench
from probes.cases import client_of
from probes.counts import Counts
from probes.probe import Control, Drill, Group
from probes.talk import DONE, Talk, talk
from probes.target import MODEL
from support.postgres import FOLDERS, running_cluster
from support.processes import Server

NUM_CLIENTS = 8
STORE_SECONDS = 60.0
Rows = dict[str, str]
"""Answers by their ids."""


def body_of(turn: int, number: int) -> dict[str, Any]:
    script = f'@script {{"text": "The fox. The dog. ", "delay": {(0, 0.001, 0.01)[turn % 3]}}}'
    fields = {"stream": turn % 2 == 0, "n": 1 + turn % 3 // 2, "max_tokens": 1 + 7 * (turn % 5), "ignore_eos": True}
    return {"model": MODEL, "prompt": f"{script}\n{turn} {number} \0 é \U0001f600", "log_prompt": True, **fields}


def on_sqlite(bench: Bench) -> Counts:
    """Kills at random moments (F16); the file opens, is whole, and has every answer that was acknowledged."""
    with TemporaryDirectory(prefix="octavo-probe-") as folder:
        file = Path(folder, "log.db")
        return killed_again_and_again(bench, Path(folder), f"sqlite:///{file}", lambda: _sqlite_rows(file))


def _sqlite_rows(file: Path) -> Rows:
    with closing(sqlite3.connect(file)) as database:
        [(state,)] = database.execute("pragma integrity_check")
        assert state == "ok", state
        if not database.execute("select 1 from sqlite_master where name = 'prompt_log'").fetchone():
            return {}  # nothing has been stored yet
        return dict(database.execute("select id, answer from prompt_log"))


def on_postgresql(bench: Bench) -> Counts:
    with running_cluster() as cluster, TemporaryDirectory(prefix="octavo-probe-") as folder:
        database = asyncio.run(cluster.new_database())

        async def rows() -> Rows:
            connection = await cluster.connect(database)
            try:
                return {row["id"]: row["answer"] for row in await connection.fetch("select id, answer from prompt_log")}
            finally:
                await connection.close()

        return killed_again_and_again(bench, Path(folder), cluster.url(database), lambda: asyncio.run(rows()))


def no_postgresql() -> str:
    return "" if list(Path("/").glob(f"{FOLDERS[1:]}/initdb")) else "PostgreSQL is not installed"


def killed_again_and_again(bench: Bench, folder: Path, url: str, rows: Callable[[], Rows]) -> Counts:
    counts, acknowledged, draw = Counts(), dict[str, Talk](), random.Random(bench.seed)
    flags = ("--log-db", url, "--log-spool", str(folder / "spool"))
    num_kills = bench.sized(200)
    for number in range(num_kills):
        with bench.serving(*flags, folder=folder) as server:
            asyncio.run(_until_killed(bench, server, number, draw.uniform(0.02, 0.8), acknowledged))
    with bench.serving(*flags, folder=folder) as server:
        stored = _stored(rows, set(acknowledged))
        server.send(signal.SIGTERM)
        counts.count("ends well", server.wait() == 0)
    for id, end in acknowledged.items():
        counts.count("stored", id in stored, f"{id} {end} is not among {len(stored)} rows")
    for id, answer in stored.items():
        counts.count("whole", _is_whole(answer), f"{id}: {answer[:200]!r}")
    counts.figures |= {
        "kills": num_kills,
        "acknowledged": len(acknowledged),
        "acknowledged but missing": len(set(acknowledged) - set(stored)),
        "rows": len(stored),
    }
    counts.count("some were acknowledged", len(acknowledged) > 0)
    return counts


async def _until_killed(
    bench: Bench, server: Server, number: int, seconds: float, acknowledged: dict[str, Talk]
) -> None:
    """Clients that ask for one answer after the other, and a kill in the middle."""
    async with client_of(bench.target(server)) as client:
        work = [asyncio.create_task(_ask_on(client, turn, number, acknowledged)) for turn in range(NUM_CLIENTS)]
        await asyncio.sleep(seconds)
        server.kill()
        await asyncio.gather(*work)


async def _ask_on(client: httpx.AsyncClient, turn: int, number: int, acknowledged: dict[str, Talk]) -> None:
    while True:
        end = await talk(client, body_of(turn, number))
        turn += NUM_CLIENTS
        if end.end != DONE:
            return
        acknowledged[end.id] = end


def _stored(rows: Callable[[], Rows], wanted: set[str]) -> Rows:
    """What there is once all is there, or after a time."""
    deadline = time.monotonic() + STORE_SECONDS
    found = rows()
    while not wanted <= set(found) and time.monotonic() < deadline:
        time.sleep(0.2)
        found = rows()
    return found


def _is_whole(answer: str) -> bool:
    try:
        json.loads(answer)
    except ValueError:
        return answer == "" or "data: " in answer
    return True


def full_spool(bench: Bench) -> Counts:
    """A database that cannot be reached and a spool that is full (F15): said so with 503, and the others are served."""
    counts = Counts()
    with TemporaryDirectory(prefix="octavo-probe-") as folder:
        url = f"postgresql://nobody@/nothing?host={folder}"
        flags = ("--log-db", url, "--log-spool", f"{folder}/spool", "--max-log-spool", "20000")
        with bench.serving(*flags, folder=Path(folder)) as server:
            asyncio.run(_fill(bench, server, counts))
    return counts


async def _fill(bench: Bench, server: Server, counts: Counts) -> None:
    async with client_of(bench.target(server)) as client:
        ends = [await talk(client, body_of(1, number)) for number in range(bench.sized(100, 60))]
        for end in ends:
            right = end.end == DONE or (end.status == 503 and end.code == "prompt_log_unavailable")
            counts.count("logged or refused", right, str(end))
        counts.count("some were logged", any(end.end == DONE for end in ends))
        counts.count("some were refused", any(end.status == 503 for end in ends))
        for _ in range(10):
            plain = await talk(client, body_of(1, 0) | {"log_prompt": False})
            counts.count("others are served", plain.end == DONE, str(plain))


GROUP = Group(
    "logging",
    (
        Drill("kills, SQLite", on_sqlite),
        Drill("kills, PostgreSQL", on_postgresql, why_not=no_postgresql),
        Drill("a full spool", full_spool),
    ),
    (
        Control("--log-db", "kills, SQLite", ("--log-db", "none")),
        Control("--max-log-spool", "a full spool", ("--max-log-spool", "1GiB")),
    ),
    share=0.05,
)
