"""The memory, file descriptors, threads and children of a server, every 20 ms.

python -m probes.sampler PID
"""

import asyncio
import sys
from contextlib import suppress

import msgspec
import psutil

from probes.companion import accompany

INTERVAL = 0.02


class Sample(msgspec.Struct):
    """Of a process and all below it. memory: bytes of resident memory."""

    memory: int = 0
    num_fds: int = 0
    num_threads: int = 0
    children: list[int] = []


class Samples(msgspec.Struct):
    """before: when the time began. peak: largest memory. after: when it ended. children: all that were seen."""

    before: Sample
    peak: int
    after: Sample
    children: list[int] = []


def sample(process: psutil.Process) -> Sample:
    taken = Sample()
    with suppress(psutil.NoSuchProcess):
        children = process.children(recursive=True)
        taken.children = [child.pid for child in children]
        for each in (process, *children):
            with suppress(psutil.NoSuchProcess), each.oneshot():
                taken.memory += each.memory_info().rss
                taken.num_fds += each.num_fds()
                taken.num_threads += each.num_threads()
    return taken


async def watch(process: psutil.Process, is_over: asyncio.Event) -> Samples:
    before = sample(process)
    samples = Samples(before, before.memory, before)
    children = set(before.children)
    while not is_over.is_set():
        samples.after = sample(process)
        samples.peak = max(samples.peak, samples.after.memory)
        children.update(samples.after.children)
        await asyncio.sleep(INTERVAL)
    samples.children = sorted(children)
    return samples


async def main() -> None:
    process = psutil.Process(int(sys.argv[1]))

    async def work(is_over: asyncio.Event) -> Samples:
        return await watch(process, is_over)

    await accompany(True, work)


if __name__ == "__main__":
    asyncio.run(main())
