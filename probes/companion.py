"""A process beside the server that works between "begin" and "end" and then reports, a JSON object a line."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from support.processes import SECONDS

BEGIN, END = b"begin\n", b"end\n"


class Companion:
    """The side of the one who started it. `first`: its first report, when it is ready to begin."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self.first = self._report()

    def begin(self) -> None:
        """Returns when it has begun."""
        self._say(BEGIN)
        self._report()

    def end(self) -> Any:
        """What it saw since it began."""
        self._say(END)
        return self._report()

    def _say(self, word: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(word)
        self._process.stdin.flush()

    def _report(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args!r} ended before it reported")
        return msgspec.json.decode(line)


@contextmanager
def accompanied(module: str, *arguments: str) -> Iterator[Companion]:
    """`python -m module`, as long as the block runs."""
    command = (sys.executable, "-m", module, *arguments)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield Companion(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


async def accompany(first: Any, work: Callable[[asyncio.Event], Awaitable[Any]]) -> None:
    """The side of the companion. work: does its work until the event is set, and returns the report."""
    report(first)
    while await _word() == BEGIN:
        is_over = asyncio.Event()
        task = asyncio.ensure_future(work(is_over))
        report(True)
        await _word()
        is_over.set()
        report(await task)


def report(value: Any) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.buffer.flush()


async def _word() -> bytes:
    return await asyncio.to_thread(sys.stdin.buffer.readline)
