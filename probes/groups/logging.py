"""The whole server is killed while it logs; what a client was told is stored, is stored."""

import asyncio
import json
import random
import re
import signal
import sqlite3
import time
from collections import defaultdict
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
from probes.small_disk import no_small_disk, small_disk
from probes.talk import DONE, ERROR, Talk, talk
from probes.target import MODEL
from support.postgres import FOLDERS, running_cluster
from support.processes import Server, eventually

NUM_CLIENTS = 8
STORE_SECONDS = 60.0
DISK_SIZE, FILLER_SIZE = 2**20, 3 * 2**18
"""Bytes. What was logged in the rest has room on the whole disk, also while SQLite has it twice."""
ROW_SIZE = 1024
"""Bytes of a prompt; a row has it in the request's body, and again as the model was given it."""
NUM_REFUSED = 8
"""In a row, and the disk counts as full."""
NUM_AGAIN = 10
"""After that there still is room: SQLite's journal takes about 20 KiB for each row until it is 4 MiB."""
MAX_FILLING = 1000
MAX_TRIES = 300
RETRY_SECONDS = 6.0
"""The server does not try a spool again that could not be written in the last 5 s."""
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


def full_disk(bench: Bench) -> Counts:
    """The spool and the SQLite database on a disk that is full for a while (F15): all is stored, or said not to be."""
    counts = Counts()
    with small_disk(DISK_SIZE) as disk, TemporaryDirectory(prefix="octavo-probe-") as folder:
        filler, file = disk / "filler", disk / "log.db"
        filler.write_bytes(bytes(FILLER_SIZE))
        flags = ("--log-db", f"sqlite:///{file}", "--log-spool", str(disk / "spool"))
        with bench.serving(*flags, folder=Path(folder)) as server:
            children = [child.pid for child in server.children()]
            ends = asyncio.run(_fill_and_free(bench, server, counts, filler))
            rows = _rows_of(server)
            counts.num_exits += [child.pid for child in server.children()] != children
            server.send(signal.SIGTERM)
            counts.count("ends well", server.wait() == 0)
            counts.count("its log tells", "prompt log" in server.log, server.log)
        _judge_rows(counts, ends, rows, _sqlite_rows(file) if file.exists() else {})
    return counts


async def _fill_and_free(bench: Bench, server: Server, counts: Counts, filler: Path) -> list[Talk]:
    """How the requests with log_prompt ended: until none is logged any more, then others, then with room again."""
    ends = list[Talk]()
    async with client_of(bench.target(server)) as client:
        while len(ends) < MAX_FILLING and not _are_refused(ends[-NUM_REFUSED:]):
            ends.append(await _ask_both(client, len(ends), counts))
        counts.count("some were logged", any(end.end == DONE for end in ends))
        counts.count("the disk is full", _are_refused(ends[-NUM_REFUSED:]), f"{len(ends)} requests did not fill it")
        ready = (await client.get("/ready")).json()
        counts.count("said to be degraded", ready.get("status") == "degraded" and bool(ready["prompt_log"]), str(ready))
        counts.figures["requests until it was full"] = len(ends)
        ends += await _ask_while_full(client, bench.sized(100, 20), counts)
        await asyncio.to_thread(filler.unlink)
        ends += await _ask_until_well(client, counts)
        for number in range(NUM_AGAIN):
            ends.append(await _ask_both(client, number, counts))
            counts.count("logged again", ends[-1].end == DONE, str(ends[-1]))
        await asyncio.to_thread(eventually, lambda: _rows_of(server)["waiting"] == 0)
    return ends


async def _ask_while_full(client: httpx.AsyncClient, number: int, counts: Counts) -> list[Talk]:
    """Also some time after the first refusals, when the server tries again."""
    ends = [await _ask_both(client, each, counts) for each in range(number // 2)]
    await asyncio.sleep(RETRY_SECONDS)
    return ends + [await _ask_both(client, each, counts) for each in range(number // 2)]


async def _ask_both(client: httpx.AsyncClient, number: int, counts: Counts) -> Talk:
    """The end of a request with log_prompt; one without it is served whatever becomes of that."""
    body = body_of(number, number)
    body["prompt"] += "x" * ROW_SIZE
    plain = await talk(client, body | {"log_prompt": False})
    counts.count("others are served", plain.end == DONE, str(plain))
    end = await talk(client, body)
    counts.count("logged or refused", end.end == DONE or _is_refused(end), str(end))
    return end


def _is_refused(end: Talk) -> bool:
    """Before it began, or at the end of its stream."""
    return end.code == "prompt_log_unavailable" and (end.status == 503 or end.end == ERROR)


def _are_refused(ends: list[Talk]) -> bool:
    return len(ends) == NUM_REFUSED and all(map(_is_refused, ends))


async def _ask_until_well(client: httpx.AsyncClient, counts: Counts) -> list[Talk]:
    """Nobody finds out that there is room before a row is tried again."""
    ends = list[Talk]()
    for number in range(MAX_TRIES):
        if (await client.get("/ready")).json()["status"] == "ok":
            break
        ends.append(await _ask_both(client, number, counts))
        await asyncio.sleep(0.2)
    counts.count("well again", len(ends) < MAX_TRIES, f"still not after {MAX_TRIES} requests")
    return ends


def _rows_of(server: Server) -> defaultdict[str, float]:
    """By result, as the metrics count them; "waiting" is a gauge. 0 where there are none."""
    with server.client() as client:
        page = client.get("/metrics").text
    found = re.findall(r'^octavo_prompt_log_(?:rows_total{result="(.*)"}|(waiting)_rows) (.*)$', page, re.MULTILINE)
    return defaultdict(float, {result or waiting: float(value) for result, waiting, value in found})


def _judge_rows(counts: Counts, ends: list[Talk], rows: defaultdict[str, float], stored: Rows) -> None:
    """answered = logged + counted as not logged, exactly, by the clients, the metrics and the database."""
    acknowledged = {end.id for end in ends if end.end == DONE}
    num_not = rows["refused"] + rows["lost"]
    for what, is_right in (
        ("acknowledged, and so stored", acknowledged == set(stored)),
        ("counted as logged", rows["logged"] == len(acknowledged)),
        ("counted as stored", rows["stored"] == len(stored)),
        ("counted as refused or lost", num_not == len(ends) - len(acknowledged)),
        ("none set aside or deleted", not rows["set_aside"] + rows["deleted"]),
    ):
        counts.count(
            what, is_right, f"{len(ends)} asked, {len(acknowledged)} acknowledged, {len(stored)} rows, {dict(rows)}"
        )
    for id, answer in stored.items():
        counts.count("whole", _is_whole(answer), f"{id}: {answer[:200]!r}")
    counts.figures |= {
        "acknowledged": len(acknowledged),
        "acknowledged but missing": len(acknowledged - set(stored)),
        "stored but not acknowledged": len(set(stored) - acknowledged),
        "refused": rows["refused"],
        "lost at their end": rows["lost"],
    }


GROUP = Group(
    "logging",
    (
        Drill("kills, SQLite", on_sqlite),
        Drill("kills, PostgreSQL", on_postgresql, why_not=no_postgresql),
        Drill("a full spool", full_spool),
        Drill("a full disk", full_disk, why_not=no_small_disk),
    ),
    (
        Control("--log-db", "kills, SQLite", ("--log-db", "none")),
        Control("--log-db: a full disk", "a full disk", ("--log-db", "none")),
        Control("--max-log-spool", "a full spool", ("--max-log-spool", "1GiB")),
    ),
    share=0.05,
)
