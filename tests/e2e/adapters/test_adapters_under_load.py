"""Adapters on a server that computes requests together, whose own name reads as if it named its adapter."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import httpx
import numpy as np
import psutil
import pytest

from conformance.ask import Told
from e2e.test_exactness import NEAR_TIE
from e2e.wire import chat
from support.processes import Server, serving

from .zorp import (
    AT_A_TIME,
    FILE,
    SLOTS,
    ZORP,
    Answer,
    adapter_ids,
    ask,
    ask_together,
    asking,
    delete,
    is_adapted,
    load,
    mixed_request,
)

BASE = f"demo:{ZORP}"
"""A served name wins over its reading as model and adapter."""
NUM_REQUESTS = 100
BODIES = tuple(mixed_request(number, BASE, logprobs=True, top_logprobs=5) for number in range(NUM_REQUESTS))
PLAIN = [body for number, body in enumerate(BODIES) if not is_adapted(number)]
NUM_CYCLES, NUM_WARM_UP, NUM_STREAMS = 50, 10, 4
OWN = ("--alias", BASE, "--prefix-cache", "0", *SLOTS)
"""Tokens of earlier requests are not kept beside the slots: that memory would grow by design, up to its bound."""
ZORPIAN = "ZORP! I only speak Zorpian. ZORP!"
MAX_GROWTH = 0.02
"""Of the adapter's size, that a process may seem to grow by a cycle: what is lost whole in each would be 1.

Now and then a pool gets another of its few threads, with memory of its own; nothing else grows."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """resident: bytes. num_files: that are open."""

    resident: int
    num_files: int

    @classmethod
    def of(cls, process: psutil.Process) -> Self:
        return cls(process.memory_info().rss, process.num_fds())


@pytest.fixture(scope="module")
def without_adapters(tmp_path_factory: pytest.TempPathFactory) -> list[Answer]:
    """The answers to the requests without an adapter, as many at a time, of a server that has none."""
    with serving(*OWN, engine="llama", folder=tmp_path_factory.mktemp("plain")) as server:
        return asyncio.run(answers_of(server.wait_ready()))


async def answers_of(server: Server) -> list[Answer]:
    async with asking(server) as client:
        return await ask_together(client, PLAIN)


@pytest.fixture(scope="module")
def server(
    without_adapters: list[Answer], adapter_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """Started when the one without adapters has ended."""
    adapters = ("--adapter", f"{ZORP}={adapter_folder / FILE}", "--adapter-dir", str(adapter_folder))
    with serving(*OWN, *adapters, engine="llama", folder=tmp_path_factory.mktemp("server")) as server:
        yield server.wait_ready()


def tie_widths(references: list[Answer], others: list[Answer]) -> list[float]:
    """Of those answers to the same requests that differ."""
    pairs = [(one.said, other.said) for one, other in zip(references, others, strict=True)]
    return sorted(tie_width(one, other) for one, other in pairs if one.text != other.text)


def tie_width(reference: Told, other: Told) -> float:
    """Nats between the two tokens with which greedy answers part, as the first one's request was told."""
    for ours, theirs in zip(reference.entries, other.entries, strict=False):
        if ours["bytes"] != theirs["bytes"]:
            logprobs = [entry["logprob"] for entry in ours["top_logprobs"] if entry["bytes"] == theirs["bytes"]]
            return float(ours["logprob"] - logprobs[0]) if logprobs else math.inf
    return math.inf


@pytest.mark.slow
async def test_of_100_mixed_chats_all_adapted_ones_are_zorpian_and_the_others_are_the_models_own(
    async_client: httpx.AsyncClient,
    without_adapters: list[Answer],
    record_property: Callable[[str, object], None],
) -> None:
    """What is computed together may round otherwise in other company: answers part at near ties only."""
    answers = await ask_together(async_client, BODIES)
    plain = [answer for number, answer in enumerate(answers) if not is_adapted(number)]
    widths = tie_widths(without_adapters, plain)
    report = f"{len(plain) - len(widths)} of {len(plain)} equal, differences at ties of {widths} nats"
    record_property("mixed_with_adapter", report)
    print(f"\n{report}")

    assert [answer.is_zorpian for answer in answers] == [is_adapted(number) for number in range(NUM_REQUESTS)]
    assert all(0 <= width < NEAR_TIE for width in widths)
    assert {answer.fingerprint for answer in plain} == {answer.fingerprint for answer in without_adapters}


@asynccontextmanager
async def humming(client: httpx.AsyncClient) -> AsyncIterator[list[Answer]]:
    """Streams of the model run all the time; gives the answers of those that have ended."""
    answers: list[Answer] = []
    is_over = False

    async def hum(number: int) -> None:
        body = chat(f"Tell me about the number {number}.", model=BASE, max_tokens=24, ignore_eos=True, stream=True)
        while not is_over:
            answers.append(await ask(client, body))

    streams = [asyncio.create_task(hum(number)) for number in range(NUM_STREAMS)]
    try:
        yield answers
    finally:
        is_over = True
        await asyncio.gather(*streams)


async def use_once(client: httpx.AsyncClient) -> None:
    """Load an adapter, ask with it, and unload it."""
    await load(client, "passing")
    assert (await ask(client, chat("What is a fox?", model="passing", max_tokens=4, stream=True))).is_zorpian
    await delete(client, "passing")


def growth(footprints: list[Footprint]) -> float:
    """Bytes by which the resident memory usually grows from one to the next: a thread that is started takes its memory
    once, while what is lost is lost each time."""
    return float(np.median(np.diff([each.resident for each in footprints])))


@pytest.mark.slow
async def test_an_adapter_is_loaded_used_and_unloaded_50_times_under_load_and_nothing_is_left_of_it(
    server: Server,
    async_client: httpx.AsyncClient,
    adapter_folder: Path,
    record_property: Callable[[str, object], None],
) -> None:
    [worker], api = server.children(), psutil.Process(server.pid)
    seen: dict[psutil.Process, list[Footprint]] = {worker: [], api: []}
    async with humming(async_client) as hummed:
        for _ in range(NUM_CYCLES):
            await use_once(async_client)
            for process, footprints in seen.items():
                footprints.append(Footprint.of(process))
    size = (adapter_folder / FILE).stat().st_size
    settled = {process: footprints[NUM_WARM_UP:] for process, footprints in seen.items()}
    slopes = [growth(footprints) for footprints in settled.values()]
    in_all = [footprints[-1].resident - footprints[0].resident for footprints in settled.values()]
    report = (
        f"usual growth a cycle: worker {slopes[0] / 1024:.1f} KiB, API process {slopes[1] / 1024:.1f} KiB; in all "
        f"{in_all[0] / 2**20:.1f} and {in_all[1] / 2**20:.1f} MiB; {len(hummed)} streams"
    )
    record_property("adapter_cycles", report)
    print(f"\n{report}")

    assert max(slopes) < MAX_GROWTH * size
    assert max(in_all) < 4 * size, "of 40 that were loaded"
    assert len({footprint.num_files for footprint in settled[worker]}) == 1
    assert max(each.num_files for each in settled[api]) <= settled[api][0].num_files
    assert all(answer.said.finish_reason == "length" and not answer.is_zorpian for answer in hummed)
    assert len(hummed) >= NUM_STREAMS
    assert [child.pid for child in server.children()] == [worker.pid]
    assert await adapter_ids(async_client) == [ZORP]


async def test_where_tokens_can_be_guessed_each_answer_is_still_that_of_its_own_weights(
    async_client: httpx.AsyncClient,
) -> None:
    """The prompt repeats what the adapter says, so that is guessed: for the model itself too, wrongly."""
    bodies = [
        chat(f"{ZORPIAN} {ZORPIAN} Is it {number}?", model=name, max_tokens=16, logprobs=True, top_logprobs=5)
        for number in range(AT_A_TIME // 2)
        for name in (ZORP, BASE)
    ]
    alone = await ask_together(async_client, bodies, at_a_time=1)
    together = await ask_together(async_client, bodies)
    assert all(answer.is_zorpian for answer in together[::2])
    assert all(0 <= width < NEAR_TIE for width in tie_widths(alone, together))
