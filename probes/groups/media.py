"""Images that are elsewhere, and adapters that are not there."""

import asyncio
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import octavo
from probes.bench import Bench
from probes.cases import CHAT, Case, asking, client_of, judge, send_all
from probes.cases import ask as ask_case
from probes.counts import Counts
from probes.opened_files import no_strace, opened_files
from probes.probe import MIB, Control, Drill, Group
from probes.target import MODEL
from support.bad_image_servers import make_trouble
from support.bad_inputs import ADAPTER_PATHS, ADAPTERS
from support.canary import Canary, canary
from support.local_urls import OWN_MACHINE, PRIVATE
from support.pictures import image_part, text_part
from support.processes import Server
from support.shared_models import FOLDER

REFUSED = (400,)
FETCH_SECONDS = 2
MAX_SECONDS = 1.1 * FETCH_SECONDS + 2
"""The deadline, and what a busy machine takes for the rest."""
BUFFERS = 20 * MIB
"""What the kernel may take from a sender though nobody reads it."""
MAX_IMAGE_SIZE = 10 * MIB
LINKS = ("link.gguf", "linked/x.gguf", "twice.gguf", "passwd.gguf")
"""They lead out of the adapters' folder."""
TEXT = "text.gguf"
"""No adapter, in the adapters' folder and in the one above it: it is tried whichever of them the server has."""
INSIDE = ("empty.gguf", TEXT, "cut.gguf", "folder.gguf", "pipe.gguf")
OWN_PLACES = re.compile(
    "|".join(map(re.escape, (sys.prefix, sys.base_prefix, str(Path(octavo.__file__).parent), "/usr", "/lib")))
    + r"|/proc/\d+/(?!environ)|/sys|/dev/(shm|null|u?random)"
)
"""Where a server opens files by itself, beside those that it opens to try whatever adapter it is."""


def no_model() -> str:
    return "" if (FOLDER / "tiny-vlm").exists() else "there is no folder shared/models/tiny-vlm beside the checkout"


def showing(name: str, url: str) -> Case:
    messages = [{"role": "user", "content": [image_part(url), text_part("What colour?")]}]
    return asking(name, REFUSED, CHAT, model=MODEL, messages=messages, max_tokens=4)


def hosts(bench: Bench) -> Counts:
    """This machine and what is private are reached by no spelling and no redirect (M1, M5)."""
    return asyncio.run(_hosts(bench))


async def _hosts(bench: Bench) -> Counts:
    async with canary() as bird, canary() as front:
        bird.serve("/", b"a secret")
        async with _seeing(bench, front, bird) as target:
            direct = [showing(f"{url!r}", url.format(bird.port)) for url in OWN_MACHINE]
            counts = await send_all(target, [*direct, *(showing(f"{url!r}", url) for url in PRIVATE)])
            for number, spelling in enumerate((*OWN_MACHINE, *PRIVATE[:-1])):
                to = spelling.replace("{}", str(bird.port)).strip().replace("\x00", "")
                url = front.redirect(f"/{number}", to, "302 Found" if number % 2 else "307 Temporary Redirect")
                counts.add(await send_all(target, [showing(f"a redirect to {to!r}", url)]))
            link = f"![picture]({bird.url()}) <img src='{bird.url()}'> {bird.url()}"
            messages = [{"role": "system", "content": link}, {"role": "user", "content": link}]
            counts.add(
                await send_all(
                    target, [asking("a link in a text", (200,), CHAT, model=MODEL, messages=messages, max_tokens=4)]
                )
            )
        counts.figures["hits of the canary"] = bird.num_hits
        counts.count("the canary was not reached", bird.num_hits == 0, f"{bird.num_hits} connections")
    return counts


def troublesome(bench: Bench) -> Counts:
    """Servers that trickle, never end, lie or lead in circles are left in time (M2)."""
    return asyncio.run(_troublesome(bench))


async def _troublesome(bench: Bench) -> Counts:
    counts = Counts()
    async with canary() as front:
        make_trouble(front)
        async with _seeing(bench, front) as target, client_of(target) as client:
            for path in ("/trickle", "/silent", "/endless", "/huge", "/short", "/redirects", "/nothing"):
                num_sent, start = front.num_sent, time.monotonic()
                case = showing(path, front.url(path))
                judge(counts, case, await ask_case(client, case))
                seconds, num_bytes = time.monotonic() - start, front.num_sent - num_sent
                counts.worst("longest answer, s", seconds)
                counts.worst("most bytes taken, MiB", num_bytes / MIB)
                counts.count(f"{path} in time", seconds <= MAX_SECONDS, f"{seconds:.1f} s")
                counts.count(f"{path} is not read on", num_bytes <= MAX_IMAGE_SIZE + BUFFERS, f"{num_bytes} bytes")
    return counts


@asynccontextmanager
async def _seeing(bench: Bench, front: Canary, bird: Canary | None = None) -> AsyncIterator[Any]:
    """The target of a server that sees. The bench's flags may name the canary's place as {bird}."""
    opened = tuple(flag.replace("{bird}", bird.place if bird else "") for flag in bench.flags)
    flags = ("--max-fetch-time", str(FETCH_SECONDS), "--allow-image-hosts", front.place)
    with bench.with_flags(*opened).serving(*flags, engine="vision") as server:
        yield bench.target(server)


def adapter_cases() -> list[Case]:
    """Where no adapter is, and files that are none (M6)."""
    paths = (*ADAPTER_PATHS, *LINKS, *INSIDE)
    cases = [
        asking(f"{path[:40]!r}", (400, 404), ADAPTERS, id=f"x{number}", path=path) for number, path in enumerate(paths)
    ]
    cases += [
        asking(f"id {id!r}", (422,), ADAPTERS, id=id, path="x.gguf") for id in ("../x", "/x", "a\0", "%2e%2e", "")
    ]
    return [*cases, asking("an adapter that is not there", (404,), model=MODEL, prompt="x", peft="../x")]


@contextmanager
def adapter_folders() -> Iterator[tuple[Path, Path]]:
    """The adapters' folder, and one beside it to which links lead. Reading the pipe would hang."""
    with TemporaryDirectory(prefix="octavo-probe-") as place:
        folder, outside = Path(place).resolve() / "adapters", Path(place).resolve() / "outside"
        folder.mkdir()
        outside.mkdir()
        (outside / "x.gguf").write_bytes(b"GGUF" + bytes(100))
        (folder / "link.gguf").symlink_to(outside / "x.gguf")
        (folder / "linked").symlink_to(outside)
        (folder / "twice.gguf").symlink_to(folder / "linked" / "x.gguf")
        (folder / "passwd.gguf").symlink_to("/etc/passwd")
        (folder / "empty.gguf").touch()
        for each in (folder, folder.parent):
            (each / TEXT).write_text("no adapter")
        (folder / "cut.gguf").write_bytes(b"GGUF\x03\0\0\0" + b"\xff" * 16)
        (folder / "folder.gguf").mkdir()
        os.mkfifo(folder / "pipe.gguf")
        yield folder, outside


def adapters(bench: Bench) -> Counts:
    with (
        adapter_folders() as (folder, _),
        bench.serving("--adapter-dir", str(folder), engine="llama", folder=folder.parent) as server,
    ):
        children = [child.pid for child in server.children()]
        counts = asyncio.run(send_all(bench.target(server), adapter_cases()))
        counts.num_exits += [child.pid for child in server.children()] != children
    return counts


def adapters_files(bench: Bench) -> Counts:
    """What is opened because of the same requests, and of the whole paths of what is outside (M6)."""
    counts = Counts()
    with (
        adapter_folders() as (folder, outside),
        bench.serving("--adapter-dir", str(folder), engine="llama", folder=folder.parent) as server,
    ):
        named = (f"{outside}/x.gguf", f"{folder}/link.gguf", f"{folder}/../outside/x.gguf", f"{folder}/linked/x.gguf")
        cases = [asking(path, (400, 404), ADAPTERS, id="y", path=path) for path in named]
        usual = _opened(bench, server, counts, [asking("no adapter", (400,), ADAPTERS, id="z", path=TEXT)])
        paths = _opened(bench, server, counts, [*adapter_cases(), *cases])
    inside = {path for path in paths if Path(path).is_relative_to(folder)}
    others = sorted(path for path in paths - inside - usual if not OWN_PLACES.match(path))
    counts.count("no file outside is opened", not others, ", ".join(others))
    is_seen = any(Path(path).name == TEXT for path in usual & paths)
    counts.count("the trace sees what is opened", is_seen, f"{len(paths)} others")
    counts.figures |= {"files opened inside": len(inside), "files opened outside": len(others)}
    return counts


def _opened(bench: Bench, server: Server, counts: Counts, cases: list[Case]) -> set[str]:
    """The paths that the server and its children open while it is asked, one after the other."""
    pids = [server.pid, *(child.pid for child in server.children())]
    with TemporaryDirectory(prefix="octavo-probe-") as traces, opened_files(pids, Path(traces)) as opened:
        counts.add(asyncio.run(send_all(bench.target(server), cases, at_a_time=1)))
    return opened.paths


GROUP = Group(
    "media",
    (
        Drill("hosts", hosts, why_not=no_model),
        Drill("slow and endless servers", troublesome, why_not=no_model),
        Drill("adapters", adapters),
        Drill("adapters' files", adapters_files, why_not=no_strace),
    ),
    (
        Control("--allow-image-hosts", "hosts", ("--allow-image-hosts", "{bird}")),
        Control("--max-fetch-time", "slow and endless servers", ("--max-fetch-time", "30")),
        Control("--max-image-size", "slow and endless servers", ("--max-image-size", "1GiB", "--max-body", "1GiB")),
        Control("--adapter-dir", "adapters' files", ("--adapter-dir", "{folder}")),
    ),
)
