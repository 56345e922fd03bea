"""All at once, for minutes: nothing grows, and every request is accounted for."""

import asyncio
import json
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import psutil

from probes.answer import SECONDS
from probes.bench import Bench
from probes.cases import CHAT, COMPLETIONS, Case, client_of
from probes.cases import ask as ask_case
from probes.counts import Counts
from probes.groups.faults import rows_of
from probes.measure import slope
from probes.probe import MIB, Drill, Group
from probes.talk import CUT, DONE, ERROR, talk
from probes.target import MODEL, Target
from support.bad_inputs import bad_inputs
from support.processes import Server

MINUTES = 10.0
KEYS = ("octv_a_key_that_may_do_everything_0123456789abcd", "octv_a_key_that_asks_too_often_0123456789abcdefg")
KILL_SECONDS = 20.0
SAMPLE_SECONDS = 1.0
WARM_UP = 0.3
"""Of the time: what is filled once is full by then."""
MAX_GROWTH = 16 * MIB
MAX_MORE_FDS = 32
PATHS = ("/v1/completions", "/v1/chat/completions", "unmatched")
SCRIPT = '@script {"text": "The fox. The dog. ", "delay": 0.005}'


class Ledger:
    """What the clients sent, by what became of it."""

    def __init__(self) -> None:
        self.ends: Counter[str] = Counter()
        self.strange: list[str] = []
        self.logged: set[str] = set()

    @property
    def num_sent(self) -> int:
        return sum(self.ends.values())

    def note(self, end: str, strange: str = "") -> None:
        self.ends[end] += 1
        if strange:
            self.strange.append(strange)


def soak(bench: Bench) -> Counts:
    seconds = 60 * MINUTES * bench.scale
    with TemporaryDirectory(prefix="octavo-probe-") as folder:
        file = Path(folder, "log.db")
        flags = (
            "--log-db",
            f"sqlite:///{file}",
            "--log-spool",
            f"{folder}/spool",
            "--key-concurrent",
            "24",
            "--slots",
            "16",
        )
        with bench.serving(*flags, keys=KEYS, folder=Path(folder)) as server:
            ledger, memory, fds = asyncio.run(_soak(bench, server, seconds))
            counted = _counted(server)
            server.send(signal.SIGTERM)
            code = server.wait()
        return _judged(ledger, memory, fds, counted, rows_of(file), code)


def _judged(
    ledger: Ledger, memory: list[float], fds: list[float], counted: Counter[str], rows: set[str], code: int
) -> Counts:
    counts = Counts()
    for strange in ledger.strange:
        counts.count("ended as it may", False, strange)
    for _ in range(ledger.num_sent - len(ledger.strange)):
        counts.count("ended as it may", True)
    total = sum(counted.values())
    counts.count(
        "the server counted as many", total == ledger.num_sent, f"{total}, not {ledger.num_sent}: {dict(counted)}"
    )
    for status in ("429",):
        counts.count(
            f"as many {status}", counted[status] == ledger.ends[status], f"{counted[status]}, {dict(ledger.ends)}"
        )
    missing = ledger.logged - rows
    counts.count("all is logged", not missing, f"{len(missing)} of {len(ledger.logged)} are missing")
    counts.count("ends well", code == 0, str(code))
    warm = memory[int(len(memory) * WARM_UP) :]
    growth = slope(warm) * len(warm) if len(warm) > 1 else 0.0
    counts.count("memory stays", growth <= MAX_GROWTH, f"{growth / MIB:.1f} MiB more")
    more = max(fds[len(fds) // 2 :]) - max(fds[: len(fds) // 2]) if len(fds) > 1 else 0
    counts.count("file descriptors stay", more <= MAX_MORE_FDS, f"{more} more")
    counts.figures |= {name: float(number) for name, number in sorted(ledger.ends.items())}
    counts.figures |= {"sent": ledger.num_sent, "rows": len(rows), "growth after warm-up, MiB": growth / MIB}
    return counts


async def _soak(bench: Bench, server: Server, seconds: float) -> tuple[Ledger, list[float], list[float]]:
    ledger, end = Ledger(), time.monotonic() + seconds
    memory, fds = list[float](), list[float]()
    target = bench.target(server, KEYS)
    other = Target(server.url, KEYS[1:], bench.seed, bench.scale, bench.examples)

    async def repeat(work: Callable[[httpx.AsyncClient, int], Awaitable[None]], aim: Target) -> None:
        number = 0
        async with client_of(aim) as client:
            while time.monotonic() < end:
                await work(client, number)
                number += 1

    async def healthy(client: httpx.AsyncClient, number: int) -> None:
        await _ask(ledger, client, number, stream=True)

    async def logged(client: httpx.AsyncClient, number: int) -> None:
        await _ask(ledger, client, number, stream=number % 2 == 0, log_prompt=True)

    async def aborted(client: httpx.AsyncClient, number: int) -> None:
        await _abort(ledger, client, number)

    async def flood(client: httpx.AsyncClient, number: int) -> None:
        await asyncio.gather(*(_ask(ledger, client, 100 * number + each, max_tokens=2) for each in range(40)))
        await asyncio.sleep(0.5)

    bad = _BadInput(ledger, random.Random(bench.seed))
    jobs = [repeat(work, target) for work in (healthy, healthy, logged, logged, aborted, aborted, bad.send)]
    await asyncio.gather(*jobs, repeat(flood, other), _kill(server, end), _watch(server, end, memory, fds))
    await asyncio.sleep(1)  # what was aborted last is counted when the server has noticed
    return ledger, memory, fds


def _body(number: int, **fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "prompt": f"{SCRIPT}\n{number}", "max_tokens": 16, "ignore_eos": True, **fields}


async def _ask(ledger: Ledger, client: httpx.AsyncClient, number: int, **fields: Any) -> None:
    end = await talk(client, _body(number, **fields))
    if end.end == DONE:
        ledger.note("answered")
        if fields.get("log_prompt"):
            ledger.logged.add(end.id)
    elif end.end == ERROR:
        ledger.note("broken off", "" if end.code == "engine_died" else str(end))
    elif end.end == CUT:
        ledger.note("cut", str(end))
    else:
        ledger.note(str(end.status), "" if end.status in (429, 503) else str(end))


async def _abort(ledger: Ledger, client: httpx.AsyncClient, number: int) -> None:
    """Leave after the first bytes of an answer, if it begins."""
    body = _body(number, stream=True, max_tokens=2000)
    async with client.stream("POST", COMPLETIONS, json=body) as response:
        if response.status_code == 200:
            await anext(response.aiter_raw())
            ledger.note("aborted")
        else:
            await response.aread()
            ledger.note(str(response.status_code), "" if response.status_code in (429, 503) else response.text)


class _BadInput:
    """One of the table after the other, from where the draw says."""

    def __init__(self, ledger: Ledger, draw: random.Random) -> None:
        self._ledger = ledger
        self._cases = [
            Case.of(bad) for bad in bad_inputs(MODEL) if bad.path in (COMPLETIONS, CHAT) and len(bad.body) < 2**16
        ]
        draw.shuffle(self._cases)

    async def send(self, client: httpx.AsyncClient, number: int) -> None:
        case = self._cases[number % len(self._cases)]
        answer = await ask_case(client, case)
        right = answer.status in (*case.expected, 429, 503)
        self._ledger.note(
            str(answer.status) if answer.status in (429, 503) else "refused", "" if right else f"{case.name}: {answer}"
        )


async def _kill(server: Server, end: float) -> None:
    while time.monotonic() + KILL_SECONDS < end:
        await asyncio.sleep(KILL_SECONDS)
        for child in server.children():
            child.kill()


async def _watch(server: Server, end: float, memory: list[float], fds: list[float]) -> None:
    """The server's own process: the engine's is another one after each kill."""
    process = psutil.Process(server.pid)
    while time.monotonic() < end:
        memory.append(float(process.memory_info().rss))
        fds.append(float(process.num_fds()))
        await asyncio.sleep(SAMPLE_SECONDS)


def _counted(server: Server) -> Counter[str]:
    """Requests by their status, as the server's metrics have them."""
    counted: Counter[str] = Counter()
    headers = {"authorization": f"Bearer {KEYS[0]}"}
    page = httpx.get(f"{server.url}/metrics", headers=headers, timeout=SECONDS, trust_env=False).text
    for line in page.splitlines():
        name, _, value = line.rpartition(" ")
        if name.startswith("octavo_requests_total{"):
            labels = dict(part.split("=", 1) for part in name[len("octavo_requests_total{") : -1].split(","))
            if json.loads(labels["endpoint"]) in PATHS:
                counted[json.loads(labels["status"])] += int(float(value))
    return counted


GROUP = Group("soak", (Drill("all at once", soak),), share=0)
