"""Images that are elsewhere, and adapters that are not there."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from probes.bench import Bench
from probes.cases import CHAT, Case, asking, client_of, judge, send_all
from probes.cases import ask as ask_case
from probes.counts import Counts
from probes.probe import MIB, Control, Drill, Group
from probes.target import MODEL
from support.bad_inputs import ADAPTER_PATHS, ADAPTERS
from support.canary import Canary, canary
from support.local_urls import OWN_MACHINE, PRIVATE
from support.pictures import image_part, text_part
from support.shared_models import FOLDER

REFUSED = (400,)
FETCH_SECONDS = 2
MAX_SECONDS = 1.1 * FETCH_SECONDS + 2
"""The deadline, and what a busy machine takes for the rest."""
BUFFERS = 20 * MIB
"""What the kernel may take from a sender though nobody reads it."""
MAX_IMAGE_SIZE = 10 * MIB
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\n"


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


def make_trouble(front: Canary) -> None:
    async def trickle(writer: asyncio.StreamWriter) -> None:
        await front.send(writer, HEAD + b"content-length: 1000\r\n\r\n")
        for _ in range(1000):
            await front.send(writer, b"x")
            await asyncio.sleep(0.05)

    async def endless(writer: asyncio.StreamWriter) -> None:
        await front.send(writer, HEAD + b"\r\n")
        for _ in count():
            await front.send(writer, bytes(2**16))

    async def silent(writer: asyncio.StreamWriter) -> None:
        for _ in count():
            await front.send(writer, b"")
            await asyncio.sleep(0.05)

    front.answers |= {"/trickle": trickle, "/endless": endless, "/silent": silent}
    front.serve("/huge", bytes(100), length=10 * 10**9)
    front.serve("/short", bytes(100), length=1000)
    front.redirect("/redirects", "/redirects/0")
    for number in range(1000):
        front.redirect(f"/redirects/{number}", f"/redirects/{number + 1}")


@asynccontextmanager
async def _seeing(bench: Bench, front: Canary, bird: Canary | None = None) -> AsyncIterator[Any]:
    """The target of a server that sees. The bench's flags may name the canary's place as {bird}."""
    opened = tuple(flag.replace("{bird}", bird.place if bird else "") for flag in bench.flags)
    flags = ("--max-fetch-time", str(FETCH_SECONDS), "--allow-image-hosts", front.place)
    with bench.with_flags(*opened).serving(*flags, engine="vision") as server:
        yield bench.target(server)


def adapter_cases() -> list[Case]:
    """Where no adapter is, and files that are none (M6)."""
    paths = (
        *ADAPTER_PATHS,
        "link.gguf",
        "linked/x.gguf",
        "empty.gguf",
        "text.gguf",
        "cut.gguf",
        "folder.gguf",
        "pipe.gguf",
    )
    cases = [asking(f"{path[:40]!r}", (400, 404), ADAPTERS, id="x", path=path) for path in paths]
    cases += [
        asking(f"id {id!r}", (422,), ADAPTERS, id=id, path="x.gguf") for id in ("../x", "/x", "a\0", "%2e%2e", "")
    ]
    return [*cases, asking("an adapter that is not there", (404,), model=MODEL, prompt="x", peft="../x")]


def make_files(folder: Path, outside: Path) -> None:
    """Of the adapters' folder, and one outside of it to which a link leads. Reading the pipe would hang."""
    import os

    (outside / "x.gguf").write_bytes(b"GGUF" + bytes(100))
    (folder / "link.gguf").symlink_to(outside / "x.gguf")
    (folder / "linked").symlink_to(outside)
    (folder / "empty.gguf").touch()
    (folder / "text.gguf").write_text("no adapter")
    (folder / "cut.gguf").write_bytes(b"GGUF\x03\0\0\0" + b"\xff" * 16)
    (folder / "folder.gguf").mkdir()
    os.mkfifo(folder / "pipe.gguf")


def adapters(bench: Bench) -> Counts:
    with TemporaryDirectory(prefix="octavo-probe-") as folder, TemporaryDirectory(prefix="octavo-probe-") as outside:
        make_files(Path(folder), Path(outside))
        with bench.serving("--adapter-dir", folder, engine="llama") as server:
            children = [child.pid for child in server.children()]
            counts = asyncio.run(send_all(bench.target(server), adapter_cases()))
            counts.num_exits += [child.pid for child in server.children()] != children
    return counts


GROUP = Group(
    "media",
    (
        Drill("hosts", hosts, why_not=no_model),
        Drill("slow and endless servers", troublesome, why_not=no_model),
        Drill("adapters", adapters),
    ),
    (
        Control("--allow-image-hosts", "hosts", ("--allow-image-hosts", "{bird}")),
        Control("--max-fetch-time", "slow and endless servers", ("--max-fetch-time", "30")),
        Control("--max-image-size", "slow and endless servers", ("--max-image-size", "1GiB", "--max-body", "1GiB")),
    ),
)
