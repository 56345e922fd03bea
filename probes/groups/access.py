"""Keys, web pages from elsewhere, and what may be told to whom."""

import asyncio
import gc
import random
import signal
import statistics
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from octavo.core.api_key import new_key
from octavo.core.keyring import ClosedKeyring
from octavo.errors import Unauthenticated
from probes.answer import Answer, exchange
from probes.bench import Bench
from probes.cases import COMPLETIONS, Case, client_of, send_all
from probes.counts import Counts
from probes.documents import documents
from probes.measure import percentile, welch_t
from probes.probe import Attack, Control, Drill, Group
from probes.target import Target
from probes.verdict import leak_in
from support.processes import OCTAVO, SECONDS, Server, clean_environment, eventually

KEYS = ("octv_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG", "octv_GFEDCBAzyxwvutsrqponmlkjihgfedcba9876543210")
OPEN = ("/health",)
UNLISTED = ("/", "/docs", "/openapi.json", "/metrics", "/ready", "/v1/logs", "/v1/logs/x", "/v1/adapters/x", "/nothing")
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
GOOD = b'{"model": "demo", "prompt": "x", "max_tokens": 1}'
WORDS = (
    "x",
    "Bearer",
    "null",
    "undefined",
    "' OR 1=1 --",
    "x'; DROP TABLE prompt_log; --",
    '"',
    "%s",
    "%00",
    "\\",
    "*",
)
NUM_TRIES = 20_000
MAX_T = 4.5
MAX_EFFECT = 1e-6
EVIL = ("http://evil.example", "null", "file://", "http://localhost.evil.example", "http://127.0.0.1.evil.example", "x")


def wrong_headers() -> Iterator[tuple[str, dict[str, str]]]:
    """Of requests without a key that is known."""
    right = KEYS[0]
    yield "none", {}
    for value in ("", "Bearer", right, f"Basic {right}", f"Token {right}", f"Bearer: {right}", f"Bearer={right}"):
        yield f"{value[:14]!r}", {"authorization": value}
    for word in (
        *WORDS,
        *(right[:-1], right + "x", right[1:], right.upper(), right[::-1], f"{right},{right}"),
        "x" * 10_000,
    ):
        yield f"key {word[:20]!r} of {len(word)}", {"authorization": f"Bearer {word}"}
    for name in ("x-api-key", "api-key", "x-auth-token", "cookie", "proxy-authorization", "x-forwarded-authorization"):
        yield f"in {name}", {name: f"Bearer {right}"}


def spellings(path: str) -> Iterable[str]:
    """A path, and others that might be taken for it."""
    yield path
    if path != "/":
        yield from (
            f"{path}/",
            f"/{path}",
            f"/v1{path}",
            f"/v{path}",
            f"{path}?api_key={KEYS[0]}",
            f"{path}?key={KEYS[0]}",
        )
        yield from (
            f"{path}%2f",
            f"{path}/.",
            f"/x/..{path}",
            f"/%2e{path}",
            path.upper(),
            path.replace("/v1", "/%76%31"),
        )


async def routes(target: Target) -> Counts:
    """Every route of the document and those beside it, by every method and spelling, without a key (A1)."""
    async with client_of(target) as client:
        document = (await client.get("/openapi.json")).json()
    cases = []
    for path in dict.fromkeys((*document.get("paths", ()), *UNLISTED)):
        if path in OPEN:
            continue
        for place in spellings(path.replace("{model}", "demo").replace("{id}", "x")):
            cases += [
                Case(f"{method} {place}", (401,), GOOD if method == "POST" else b"", place, method)
                for method in METHODS
            ]
    counts = await send_all(_without_keys(target), cases)
    for path in OPEN:
        counts.add(await send_all(_without_keys(target), [Case(f"GET {path}", (200,), b"", path, "GET")]))
    counts.figures["routes"] = len({case.path for case in cases})
    return counts


def _without_keys(target: Target) -> Target:
    return Target(target.url, (), target.seed, target.scale, target.examples)


async def headers(target: Target) -> Counts:
    """What is no key, in the right header and in others (A2)."""
    cases = [
        Case(name, (401,), GOOD, COMPLETIONS, headers={"content-type": "application/json", **given})
        for name, given in wrong_headers()
    ]
    counts = await send_all(_without_keys(target), cases)
    raw = (
        ("two headers", [f"authorization: Bearer {KEYS[0]}", f"authorization: Bearer {KEYS[0]}"], (400, 401)),
        ("a wrong one and a right one", ["authorization: Bearer x", f"authorization: Bearer {KEYS[0]}"], (400, 401)),
        ("NUL", [f"authorization: Bearer {KEYS[0]}\0"], (400, 401)),
        ("not ASCII", ["authorization: Bearer \xe9\xff"], (400, 401)),
        ("a megabyte", [f"authorization: Bearer {'x' * 2**20}"], (431,)),
        ("a key on the next line", ["authorization: Bearer", f" {KEYS[0]}"], (400, 401)),
    )
    for name, lines, expected in raw:
        data = target.place.head(COMPLETIONS, f"content-length: {len(GOOD)}", *lines) + GOOD
        counts.judge(name, await exchange(target.place, data), expected, secrets=KEYS)
    good = Case("the right key", (200,), GOOD)
    counts.add(await send_all(Target(target.url, KEYS[:1]), [good]))
    counts.add(await send_all(Target(target.url, KEYS[1:]), [good]))
    return counts


def timing(bench: Bench) -> Counts:
    """Whether the time that a wrong key takes tells where it is wrong (A3)."""
    counts = Counts()
    seconds = asyncio.run(_timed(bench.sized(NUM_TRIES, 1000), random.Random(bench.seed)))
    t = welch_t(_usual(seconds["first"]), _usual(seconds["last"]))
    effect = abs(statistics.fmean(_usual(seconds["first"])) - statistics.fmean(_usual(seconds["last"])))
    counts.figures |= {"Welch's t": abs(t), "difference, ns": effect * 1e9}
    counts.figures["no key, t to a wrong one"] = abs(welch_t(_usual(seconds["absent"]), _usual(seconds["last"])))
    counts.count("first or last", abs(t) < MAX_T or effect < MAX_EFFECT / 100, f"t {t:.1f}, {effect * 1e9:.0f} ns")
    return counts


def _changed(key: str, place: int) -> str:
    letters = list(key)
    letters[place] = "A" if letters[place] != "A" else "B"
    return "".join(letters)


async def _timed(number: int, draw: random.Random) -> dict[str, list[float]]:
    """Each kind so often, in turns that are drawn. Each time with another key: where one lies in memory is told by some
    nanoseconds too."""
    right = [new_key() for _ in range(21)]
    keyring = ClosedKeyring(right)
    places = {"first": 5, "last": -1, "absent": None}
    seconds: dict[str, list[float]] = {name: [] for name in places}
    gc.disable()
    try:
        for _ in range(number):
            for name in draw.sample(sorted(places), len(places)):
                place = places[name]
                key = "" if place is None else _changed(draw.choice(right), place)
                start = time.perf_counter()
                try:
                    await keyring.caller(key)
                except Unauthenticated:
                    seconds[name].append(time.perf_counter() - start)
    finally:
        gc.enable()
    return seconds


def _usual(seconds: list[float]) -> list[float]:
    """Without those in which the machine did something else."""
    most = percentile(seconds, 95)
    return [value for value in seconds if value <= most]


def secrecy(bench: Bench) -> Counts:
    """Keys in logs, errors, metrics, the prompt log and the command lines of processes (A4)."""
    counts = Counts()
    with TemporaryDirectory(prefix="octavo-probe-") as folder:
        flags = (
            "--api-key",
            KEYS[0],
            "--log-level",
            "debug",
            "--log-db",
            f"sqlite:///{folder}/log.db",
            "--log-spool",
            folder,
        )
        with bench.serving(*flags, folder=Path(folder)) as server:
            said = "".join(asyncio.run(_talk(bench.target(server, KEYS[:1]))))
            lines = " ".join(" ".join(each.cmdline()) for each in server.children())
            _look(counts, "answers", said)
            _look(counts, "command lines of children", lines)
            server.send(signal.SIGTERM)
            server.wait()
            _look(counts, "its log", server.log)
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file():
                _look(counts, f"the file {path.name}", path.read_bytes().decode("latin-1"))
    return counts


def _look(counts: Counts, place: str, text: str) -> None:
    found = leak_in(text, text, secrets=(KEYS[0], KEYS[0][5:]))
    counts.count(f"no key in {place}", not found, found)


async def _talk(target: Target) -> list[str]:
    """All that it answers."""
    said = []
    async with client_of(target) as client:
        for path in ("/metrics", "/ready", "/openapi.json", "/v1/models", "/v1/logs", f"/{KEYS[0]}"):
            said.append((await client.get(path)).text.replace(f"/{KEYS[0]}", ""))
        for fields in ({"log_prompt": True}, {"log_prompt": True, "stream": True}, {"n": 0}, {"x": 1}):
            body = {"model": target.model, "prompt": "x", "max_tokens": 1, **fields}
            response = await client.post(COMPLETIONS, json=body)
            said.append(f"{response.headers!r}{response.text}")
        for given in (f"Bearer {KEYS[0]}x", f"Basic {KEYS[0]}", KEYS[0]):
            response = await client.post(COMPLETIONS, content=GOOD, headers={"authorization": given})
            said.append(f"{response.headers!r}{response.text}")
    return said


def revocation(bench: Bench) -> Counts:
    """A key that is revoked is refused from then on, also where the file of keys breaks; the others are not (A5)."""
    counts = Counts()
    with TemporaryDirectory(prefix="octavo-probe-") as folder:
        file = Path(folder, "keys.json")
        kept, lost = _create(file, "kept"), _create(file, "lost")
        with bench.serving("--keys-file", str(file), keys=KEYS[:1], folder=Path(folder)) as server:
            for name, key in (("kept", kept), ("lost", lost)):
                counts.count(f"{name} before", _status(server, key) == 200)
            _keys(file, "revoke", _id_of(file, "lost"))
            waited = eventually(lambda: _status(server, lost) == 401)
            counts.figures["refused after, s"] = waited
            for _ in range(bench.sized(50)):
                counts.count("lost afterwards", _status(server, lost) == 401)
            counts.count("kept afterwards", _status(server, kept) == 200)
            file.write_text("this is no file of keys")
            for _ in range(bench.sized(20)):
                counts.count("lost, and the file broken", _status(server, lost) == 401)
                counts.count("unknown, and the file broken", _status(server, new_key()) == 401)
    return counts


def _create(file: Path, name: str) -> str:
    return _keys(file, "create", name).strip()


def _keys(file: Path, *arguments: str) -> str:
    command = (OCTAVO, "keys", arguments[0], "--keys-file", str(file), *arguments[1:])
    done = subprocess.run(
        command, env=clean_environment(), cwd=file.parent, capture_output=True, timeout=SECONDS, check=True
    )
    return done.stdout.decode()


def _id_of(file: Path, name: str) -> str:
    return next(line.split()[0] for line in _keys(file, "list").splitlines() if name in line.split())


def _status(server: Server, key: str) -> int:
    with server.client() as client:
        return client.post(COMPLETIONS, content=GOOD, headers={**_JSON, "authorization": f"Bearer {key}"}).status_code


_JSON = {"content-type": "application/json"}


async def web_pages(target: Target) -> Counts:
    """Pages of other origins, and names that are not the server's (A6): nothing is done and nothing is shown."""
    counts = Counts()
    async with client_of(target) as client:
        for origin in EVIL:
            for method, path in (
                ("GET", "/v1/models"),
                ("POST", COMPLETIONS),
                ("PUT", COMPLETIONS),
                ("DELETE", "/v1/adapters/x"),
            ):
                body = GOOD if method == "POST" else b""
                response = await client.request(method, path, content=body, headers={**_JSON, "origin": origin})
                name = f"{method} from {origin}"
                counts.judge(name, Answer.of(response), (403,), sent=origin.encode())
                counts.count(f"{name}: not shared", "access-control-allow-origin" not in response.headers)
            asked = {"origin": origin, "access-control-request-method": "POST"}
            response = await client.options(COMPLETIONS, headers=asked)
            counts.judge(f"preflight from {origin}", Answer.of(response), (403,), sent=origin.encode())
            counts.count(f"preflight from {origin}: not shared", "access-control-allow-origin" not in response.headers)
        response = await client.post(COMPLETIONS, content=GOOD, headers={"content-type": "text/plain"})
        counts.judge("a form's text/plain", Answer.of(response), (415,))
    for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil.example:8080"):
        place = f"{target.place.host}:{target.place.port}".encode()
        data = target.place.head(COMPLETIONS, f"content-length: {len(GOOD)}") + GOOD
        answer = await exchange(target.place, data.replace(b"host: " + place, b"host: " + host.encode()))
        counts.judge(f"host {host}", answer, (403,), sent=host.encode())
    return counts


GROUP = Group(
    "access",
    (
        Attack("routes", routes, keys=KEYS),
        Attack("headers", headers, keys=KEYS),
        Drill("timing", timing),
        Drill("secrecy", secrecy),
        Drill("revocation", revocation),
        Attack("web pages", web_pages),
        Attack("documents", documents),
    ),
    (
        Control("keys: routes", "routes", (), keys=()),
        Control("keys: headers", "headers", (), keys=()),
        Control("--allow-origins", "web pages", ("--allow-origins", "*")),
        Control("--max-headers", "documents", ("--max-headers", "64MiB")),
        Control("--allow-hosts", "web pages", ("--allow-hosts", "*")),
    ),
)
