"""Files that are no adapters, paths that lead out of the folder, and names of nothing, sent beside running streams."""

import asyncio
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest

from e2e.wire import MODEL, Wire, chat, completion
from numeric.tiny_lora import write_lora
from support.bad_adapters import pair
from support.bad_inputs import ADAPTER_PATHS, ADAPTERS, CHAT, COMPLETIONS
from support.checks import check_error
from support.gguf_mutations import header_mutations, truncations
from support.processes import Server, eventually
from support.shared_models import shared_model

from .zorp import FILE, ZORP, Answer, adapter_ids, ask, delete, load

NUM_CUTS, NUM_MUTATIONS = 6, 20
STREAMS = (
    chat("Tell me about the sea.", max_tokens=16, stream=True, logprobs=True, top_logprobs=2),
    chat("What is a fox?", max_tokens=12, stream=True, logprobs=True, model=ZORP),
)
NAMES = ("../x", "/etc/passwd", "%2e%2e/x", "x\0", "https://127.0.0.1/x.gguf", "hf:owner/repository", FILE, "nobody")
OPENED = re.compile(r'open(?:at)?\((?:AT_FDCWD, )?"((?:[^"\\]|\\.)*)"')


@pytest.fixture
def place(adapter_folder: Path) -> Iterator[Path]:
    """Of a file that clients may load, which is removed at the end."""
    path = adapter_folder / "bad.gguf"
    yield path
    path.unlink(missing_ok=True)


@asynccontextmanager
async def undisturbed(client: httpx.AsyncClient, server: Server) -> AsyncIterator[None]:
    """Streams run meanwhile and have the bits that they have alone; the engine's process stays the same."""
    workers = [child.pid for child in server.children()]
    alone = [await ask(client, body) for body in STREAMS]
    is_over = False

    async def repeat(body: Wire) -> list[Answer]:
        answers = [await ask(client, body)]
        while not is_over:
            answers.append(await ask(client, body))
        return answers

    streams = [asyncio.create_task(repeat(body)) for body in STREAMS]
    try:
        yield
    finally:
        is_over = True
        beside = await asyncio.gather(*streams)
    for expected, answers in zip(alone, beside, strict=True):
        assert all(answer.said == expected.said for answer in answers)
    assert [child.pid for child in server.children()] == workers
    assert await adapter_ids(client) == [ZORP]


async def is_refused(client: httpx.AsyncClient, data: bytes, place: Path) -> bool:
    """Whether that file is; if not, it can be used and is unloaded again."""
    await asyncio.to_thread(place.write_bytes, data)
    response = await client.post(ADAPTERS, json={"id": "bad", "path": place.name})
    if response.status_code == 200:
        await ask(client, chat("Hi", model="bad", max_tokens=1))
        await delete(client, "bad")
        return False
    assert check_error(response, 400, None)["code"] == "adapter_refused"
    return True


def foreign_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Files that are something else than an adapter for this model."""
    yield "a model", shared_model("stories260K.gguf").read_bytes()
    yield "random bytes", np.random.default_rng(0).bytes(100_000)
    for architecture in ("qwen2", "llama"):
        path = folder / f"{architecture}.gguf"
        write_lora(path, pair(), architecture=architecture)
        yield f"an adapter for another model, {architecture}", path.read_bytes()


@pytest.mark.slow
async def test_files_that_are_no_adapter_are_refused_and_no_stream_notices(
    server: Server, async_client: httpx.AsyncClient, adapter_folder: Path, place: Path, tmp_path: Path
) -> None:
    cuts = [*truncations(adapter_folder / FILE)]
    files = [*cuts[:: len(cuts) // NUM_CUTS], *foreign_files(tmp_path)]
    async with undisturbed(async_client, server):
        taken = [what for what, data in files if not await is_refused(async_client, data, place)]
    assert not taken


@pytest.mark.slow
async def test_no_lie_in_an_adapters_header_disturbs_a_stream(
    server: Server, async_client: httpx.AsyncClient, adapter_folder: Path, place: Path
) -> None:
    """Some lies change nothing that matters; such a file is loaded."""
    mutations = header_mutations(adapter_folder / FILE, NUM_MUTATIONS)
    async with undisturbed(async_client, server):
        refused = [await is_refused(async_client, data, place) for _, data in mutations]
    assert sum(refused) >= NUM_MUTATIONS // 2


@pytest.fixture
def attacks(adapter_folder: Path) -> Iterator[list[str]]:
    """Paths that lead nowhere or out of the folder, where an adapter lies that could be loaded."""
    secret = adapter_folder.parent / "secret.gguf"
    shutil.copy(adapter_folder / FILE, secret)
    links = {"link.gguf": "../secret.gguf", "up": "..", "loop.gguf": "loop.gguf"}
    for name, target in links.items():
        (adapter_folder / name).symlink_to(target)
    yield [
        *ADAPTER_PATHS,
        "../secret.gguf",
        str(secret),
        "link.gguf",
        "up/secret.gguf",
        "loop.gguf",
        "up",
        f"{FILE}/..",
    ]
    for path in (secret, *(adapter_folder / name for name in links)):
        path.unlink()


async def attack(client: httpx.AsyncClient, paths: list[str]) -> None:
    for path in paths:
        error = check_error(await client.post(ADAPTERS, json={"id": "bad", "path": path}), 400, "path")
        assert error["code"] == "adapter_refused"


@contextmanager
def traced(server: Server, log: Path) -> Iterator[None]:
    """Which files the server's processes open is written to the log; skips the test where they cannot be watched."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    pids = [server.pid, *(child.pid for child in server.children())]
    command = (strace, "-f", "-s", "4096", "-e", "trace=open,openat,openat2", "-o", str(log))
    with subprocess.Popen(
        (*command, *(part for pid in pids for part in ("-p", str(pid)))), stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            said = [process.stderr.readline() for _ in pids]
            if not all("attached" in line for line in said):
                pytest.skip(f"strace cannot watch other processes here: {said}")
            yield
        finally:
            process.terminate()


def opened_files(log: Path) -> list[str]:
    """In order of time."""
    return OPENED.findall(log.read_text())


async def test_no_path_opens_a_file_outside_of_the_folder(
    server: Server, async_client: httpx.AsyncClient, adapter_folder: Path, attacks: list[str], tmp_path: Path
) -> None:
    await attack(async_client, attacks)  # what is imported late is opened now
    with traced(server, log := tmp_path / "opened"):
        await attack(async_client, attacks)
        await load(async_client, "good")
        eventually(lambda: str(adapter_folder / FILE) in opened_files(log))
    assert opened_files(log)[0] == str(adapter_folder / FILE)  # nothing before it, by any path
    await delete(async_client, "good")


@pytest.mark.parametrize("name", NAMES)
async def test_a_name_of_nothing_is_never_answered_by_the_model(async_client: httpx.AsyncClient, name: str) -> None:
    wrong = {"peft": {"peft": name}, "model": {"model": name}, "pair": {"model": f"{MODEL}:{name}"}}
    for path, body in ((CHAT, chat("Hi")), (COMPLETIONS, completion("Hi"))):
        for param, fields in wrong.items():
            response = await async_client.post(path, json=body | fields)
            check_error(response, 404, "peft" if param == "peft" else "model")
