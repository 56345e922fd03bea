"""Processes that are killed, hang, are told to stop, or never begin."""

import asyncio
import signal
import socket
import sqlite3
import subprocess
import time
from collections import Counter
from contextlib import suppress
from itertools import cycle, islice, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import psutil

from probes.answer import Answer
from probes.bench import Bench
from probes.cases import COMPLETIONS, client_of
from probes.counts import Counts
from probes.gauges import num_running
from probes.measure import percentile
from probes.probe import Control, Drill, Group
from probes.talk import CUT, DONE, ERROR, REFUSED, Talk, talk
from probes.target import MODEL
from support.processes import OCTAVO, SECONDS, Server, clean_environment, eventually

SIGNALS = (signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP)
PHASES = ("idle", "prefill", "decode")
NUM_STREAMS, NUM_WHOLE = 6, 2
RECOVERY_SECONDS = 120.0
STEP_SECONDS = 2
DRAIN_SECONDS = 1
BEGIN_SECONDS = 20.0
NUM_DRAINED = 10


def body_of(prompt: str, delay: float, **fields: Any) -> dict[str, Any]:
    script = f'@script {{"text": "The fox. The dog. ", "delay": {delay}}}'
    return {"model": MODEL, "prompt": f"{script}\n{prompt}", "max_tokens": 2000, "ignore_eos": True, **fields}


def engine_kills(bench: Bench) -> Counts:
    """KILL, SEGV and STOP, while it is idle, before the first token and in mid-answer (F5)."""
    counts, recoveries = Counts(), list[float]()
    plans = list(islice(cycle(product(PHASES, SIGNALS)), bench.sized(100)))
    with bench.serving("--step-timeout", str(STEP_SECONDS)) as server:
        for number, (phase, kind) in enumerate(plans):
            recoveries.append(asyncio.run(_kill(bench, server, counts, number, phase, kind)))
        counts.num_exits += not server.is_running
    counts.figures |= {
        "kills": len(plans),
        "recovery, median s": percentile(recoveries, 50),
        "recovery, worst s": max(recoveries),
    }
    return counts


async def _kill(bench: Bench, server: Server, counts: Counts, number: int, phase: str, kind: signal.Signals) -> float:
    """How long until it can serve again."""
    name = f"{kind.name} at {phase}"
    async with client_of(bench.target(server)) as client:
        begun, talks = await _begin(client, number, phase)
        await begun
        [engine] = server.children()
        engine.send_signal(kind)
        start = time.monotonic()
        ends = await asyncio.gather(*talks)
        for end in ends:
            counts.count(f"{name}: answered", end.end in (ERROR, REFUSED) and end.code == "engine_died", str(end))
        seconds = await _recovered(client, engine.pid, server, counts, name)
        after = await talk(client, body_of(f"after {number}", 0, max_tokens=4))
        counts.count(f"{name}: recovered", after.end == DONE, str(after))
        counts.worst("recovery after the last answer, s", seconds)
        return time.monotonic() - start


async def _begin(client: httpx.AsyncClient, number: int, phase: str) -> tuple[Any, list[asyncio.Task[Talk]]]:
    """What is in flight, and something to await until it is in the phase."""
    if phase == "idle":
        return asyncio.sleep(0), []
    delay, has_begun = (30.0, None) if phase == "prefill" else (0.01, asyncio.Semaphore(0))
    on_event = has_begun.release if has_begun else None
    bodies = [
        body_of(f"{phase} {number} {turn}", delay, stream=turn < NUM_STREAMS) for turn in range(NUM_STREAMS + NUM_WHOLE)
    ]
    talks = [asyncio.create_task(talk(client, body, on_event)) for body in bodies]

    async def begun() -> None:
        while True:
            if num_running((await client.get("/metrics")).text) >= len(talks):
                break
            await asyncio.sleep(0.02)
        for _ in range(NUM_STREAMS if has_begun else 0):
            assert has_begun is not None
            await has_begun.acquire()

    return begun(), talks


async def _recovered(client: httpx.AsyncClient, old: int, server: Server, counts: Counts, name: str) -> float:
    """Wait for another engine that is ready; the server lives all the time, and says that it is not ready."""
    start = time.monotonic()
    while time.monotonic() - start < RECOVERY_SECONDS:
        health = await client.get("/health")
        if health.status_code != 200:
            counts.find(f"{name}: /health {health.status_code}")
            counts.num_unplanned += 1
        children = [child.pid for child in server.children()]
        if children and old not in children and (await client.get("/ready")).status_code == 200:
            break
        await asyncio.sleep(0.02)
    return time.monotonic() - start


def crash_loop(bench: Bench) -> Counts:
    """An engine that ends whenever it starts (F6): the server lives, says so, and waits longer each time."""
    counts, pids = Counts(), set[int]()
    with bench.serving("--scripted-exit-at", "-1", is_ready=False) as server:
        server.wait_for("listens on")
        with server.client() as client:
            end = time.monotonic() + 10
            while time.monotonic() < end and server.is_running:
                pids.update(child.pid for child in server.children())
                counts.count("alive", client.get("/health").status_code == 200)
                counts.count("not ready", client.get("/ready").status_code == 503)
                answer = client.post(COMPLETIONS, json={"model": MODEL, "prompt": "x"})
                counts.judge("asked", Answer.of(answer), (503,))
                time.sleep(0.05)
        counts.num_exits += not server.is_running
    counts.count("few starts", len(pids) <= 10, f"{len(pids)} in 10 s")
    counts.figures["starts in 10 s"] = len(pids)
    return counts


def poison(bench: Bench) -> Counts:
    """A request that ends the engine, sent again and again (F7): refused after the second death, and others are not."""
    counts = Counts()
    with bench.serving() as server:
        for number in range(bench.sized(5)):
            asyncio.run(_poison(bench, server, counts, number))
        counts.num_exits += not server.is_running
    return counts


async def _poison(bench: Bench, server: Server, counts: Counts, number: int) -> None:
    body = {"model": MODEL, "prompt": f'@script {{"exit_at": 2, "text": "poison {number}"}}', "max_tokens": 30}
    pids = set[int]()
    async with client_of(bench.target(server)) as client:
        ends = Counter[str]()
        for _ in range(6):
            pids.update(child.pid for child in server.children())
            ends[(await talk(client, body)).code] += 1
            await _ready(client)
        pids.update(child.pid for child in server.children())
        counts.count("at most two deaths", len(pids) <= 3, f"{len(pids) - 1} deaths; {dict(ends)}")
        counts.count("then quarantined", ends["request_quarantined"] >= 4, str(dict(ends)))
        other = await talk(client, body_of(f"no poison {number}", 0, max_tokens=4))
        counts.count("others are answered", other.end == DONE, str(other))
        counts.worst("deaths by one request", len(pids) - 1)


async def _ready(client: httpx.AsyncClient) -> None:
    async with asyncio.timeout(RECOVERY_SECONDS):
        while True:
            if (await client.get("/ready")).status_code == 200:
                return
            await asyncio.sleep(0.02)


def drain(bench: Bench) -> Counts:
    """SIGTERM with ten streams of mixed length (F12): finished or cancelled, logged, and nothing is left."""
    counts = Counts()
    for number in range(bench.sized(20)):
        with TemporaryDirectory(prefix="octavo-probe-") as folder:
            _drain_once(bench, counts, Path(folder), number)
    return counts


def _drain_once(bench: Bench, counts: Counts, folder: Path, number: int) -> None:
    log = folder / "log.db"
    flags = (
        "--drain-timeout",
        str(DRAIN_SECONDS),
        "--log-db",
        f"sqlite:///{log}",
        "--log-spool",
        str(folder / "spool"),
    )
    with bench.serving(*flags, folder=folder) as server:
        children = server.children()
        ends, late, seconds = asyncio.run(_drained(bench, server, number))
        code = server.wait()
        for end in ends:
            right = end.end == DONE and end.finish_reasons in (("length",), ("cancelled",), ("stop",))
            counts.count("finished or cancelled", right, str(end))
        counts.count("new ones are refused", late.end in (REFUSED, CUT) and late.status in (0, 503), str(late))
        counts.count("exit code 0", code == 0, str(code))
        counts.worst("ended after, s", seconds)
        counts.num_exits += len(psutil.wait_procs(children, timeout=SECONDS)[1])
    wanted = {end.id for end in ends}
    rows = rows_of(log)
    for id in wanted:
        counts.count("logged", id in rows, f"{id} is not among {len(rows)} rows")


async def _drained(bench: Bench, server: Server, number: int) -> tuple[list[Talk], Talk, float]:
    has_begun = asyncio.Semaphore(0)
    async with client_of(bench.target(server)) as client:
        lengths = [2, 5, 20, 40, 80, 2000, 2000, 2000, 60, 10]
        talks = []
        for turn, length in enumerate(lengths):
            body = body_of(f"{number} {turn}", 0.02, max_tokens=length, stream=turn != 9, log_prompt=True)
            talks.append(asyncio.create_task(talk(client, body, has_begun.release)))
        async with asyncio.timeout(BEGIN_SECONDS):
            for _ in range(NUM_DRAINED - 1):
                await has_begun.acquire()
        start = time.monotonic()
        server.send(signal.SIGTERM)
        await asyncio.sleep(0.05)
        late = await talk(client, body_of("late", 0, max_tokens=2))
        ends = await asyncio.gather(*talks)
        await asyncio.to_thread(server.wait)
        return ends, late, time.monotonic() - start


def rows_of(log: Path) -> set[str]:
    """Ids of what was logged."""
    with suppress(sqlite3.Error), sqlite3.connect(log) as database:
        return {str(id) for (id,) in database.execute("select id from prompt_log")}
    return set()


def endings(bench: Bench) -> Counts:
    """TERM twice, INT, KILL, with an answer under way (F13): the second forces, and nothing is left."""
    counts = Counts()
    plans: tuple[tuple[str, tuple[signal.Signals, ...]], ...] = (
        ("TERM", (signal.SIGTERM,)),
        ("TERM twice", (signal.SIGTERM, signal.SIGTERM)),
        ("INT", (signal.SIGINT,)),
        ("INT and TERM", (signal.SIGINT, signal.SIGTERM)),
        ("KILL", (signal.SIGKILL,)),
    )
    for _ in range(bench.sized(5)):
        for name, signals in plans:
            with bench.serving("--drain-timeout", "600" if len(signals) > 1 else "1") as server:
                asyncio.run(_end(bench, server, counts, name, signals))
    return counts


async def _end(bench: Bench, server: Server, counts: Counts, name: str, signals: tuple[signal.Signals, ...]) -> None:
    children, has_begun = server.children(), asyncio.Semaphore(0)
    async with client_of(bench.target(server)) as client:
        stream = asyncio.create_task(talk(client, body_of(name, 0.05, stream=True), has_begun.release))
        await has_begun.acquire()
        start = time.monotonic()
        for kind in signals:
            server.send(kind)
            await asyncio.sleep(0.3)
        code = await asyncio.to_thread(server.wait)
        await stream
    left = psutil.wait_procs(children, timeout=SECONDS)[1]
    expected = {"KILL": -signal.SIGKILL}.get(name, 0 if len(signals) == 1 else 128 + signals[-1])
    counts.count(f"{name}: exit code", code == expected, f"{code}, not {expected}")
    counts.count(f"{name}: no process is left", not left, f"{left}")
    counts.worst(f"{name}: ended after, s", time.monotonic() - start)


def starts(bench: Bench) -> Counts:
    """Ended while it loads, a port that is taken, settings that are wrong, a model that is not there (F14)."""
    counts = Counts()
    with bench.serving("--scripted-load-delay", "600", is_ready=False) as server:
        server.wait_for("listens on")
        eventually(lambda: len(server.children()) == 1)
        children, start = server.children(), time.monotonic()
        server.send(signal.SIGTERM)
        code = server.wait()
        counts.count("ended while it loads", code == 0, str(code))
        counts.count("ended soon", time.monotonic() - start <= SECONDS)
        counts.num_exits += len(psutil.wait_procs(children, timeout=SECONDS)[1])
        counts.figures["ended while it loads, s"] = time.monotonic() - start
    with socket.create_server(("127.0.0.1", 0)) as taken, TemporaryDirectory(prefix="octavo-probe-") as folder:
        port = str(taken.getsockname()[1])
        Path(folder, "broken.toml").write_text("port = = 1")
        Path(folder, "empty.gguf").touch()
        for name, flags, word in (
            ("a port that is taken", ("--engine", "scripted", "--port", port), "in use"),
            ("no such option", ("--engine", "scripted", "--nothing"), "nothing"),
            ("a wrong value", ("--engine", "scripted", "--port", "99999999"), "port"),
            ("a broken file", ("--config", "broken.toml"), "broken.toml"),
            ("no such file", ("--config", "nothing.toml"), "nothing.toml"),
            ("no such model", ("nothing.gguf",), "nothing.gguf"),
            ("an empty model", ("empty.gguf", "--port", "0"), "empty"),
            ("no such database", ("--engine", "scripted", "--port", "0", "--log-db", "oracle://x/y"), "log-db"),
            ("no such folder", ("--engine", "scripted", "--port", "0", "--adapter-dir", "/nothing"), "adapter-dir"),
        ):
            _refused_start(counts, name, flags, word, Path(folder))
    return counts


def _refused_start(counts: Counts, name: str, flags: tuple[str, ...], word: str, folder: Path) -> None:
    start = time.monotonic()
    command = (OCTAVO, "serve", *flags)
    environment = clean_environment(XDG_STATE_HOME=str(folder))
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=SECONDS, check=False)
    said = done.stderr.decode()
    counts.count(f"{name}: not 0", done.returncode != 0)
    counts.count(f"{name}: says why", word in said and "Traceback" not in said, said[-300:])
    counts.worst("refused after, s", time.monotonic() - start)


GROUP = Group(
    "faults",
    (
        Drill("engine kills", engine_kills),
        Drill("crash loop", crash_loop),
        Drill("poison", poison),
        Drill("drain", drain),
        Drill("endings", endings),
        Drill("starts", starts),
    ),
    (Control("--log-db", "drain", ("--log-db", "none")),),
    share=0.1,
)
