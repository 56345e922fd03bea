"""Servers as child processes: started, waited for, stopped by their process group."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.http_client import Server, fetch_json

POLL_SECONDS = 0.2
PROBE_SECONDS = 5.0
STOP_SECONDS = 20.0
LOG_TAIL_CHARACTERS = 2000


class ServerFailed(Exception):
    """A server ended, or was not ready in time; the message has the end of its log."""


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """How to start a server; `{port}` in the arguments is where it shall listen."""

    name: str
    arguments: tuple[str, ...]
    ready_path: str

    def on_port(self, port: int) -> list[str]:
        return [argument.replace("{port}", str(port)) for argument in self.arguments]


@asynccontextmanager
async def running(command: ServerCommand, log_path: Path, ready_seconds: float = 300.0) -> AsyncIterator[str]:
    """Start the server on a free loopback port, yield its URL once it is ready, stop it. Raises ServerFailed."""
    port = free_port()
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with log_path.open("wb") as log:
        # A session of its own: whatever the server starts can be ended with it.
        process = await asyncio.create_subprocess_exec(
            *command.on_port(port), stdin=DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        await _wait_until_ready(process, Server("127.0.0.1", port), command, log_path, ready_seconds)
        yield f"http://127.0.0.1:{port}"
    finally:
        await end(process)


def free_port() -> int:
    """A loopback port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def _wait_until_ready(
    process: asyncio.subprocess.Process, server: Server, command: ServerCommand, log_path: Path, ready_seconds: float
) -> None:
    deadline = time.monotonic() + ready_seconds
    while not await _is_ready(server, command.ready_path):
        if process.returncode is not None:
            raise ServerFailed(f"{command.name} ended with status {process.returncode}:\n{log_tail(log_path)}")
        if time.monotonic() > deadline:
            raise ServerFailed(f"{command.name} was not ready after {ready_seconds:g} s:\n{log_tail(log_path)}")
        await asyncio.sleep(POLL_SECONDS)


async def _is_ready(server: Server, path: str) -> bool:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            status, _ = await fetch_json(server, "GET", path)
    except OSError:
        return False
    return status == 200


async def end(process: asyncio.subprocess.Process) -> None:
    """Ask a process to end, wait, then end what is left of its process group."""
    if process.returncode is None:
        process.terminate()
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def run_until_stopped(main: Coroutine[Any, Any, None]) -> None:
    """Run main; SIGTERM and Ctrl-C cancel it, so that it stops its servers, and end the program with status 130."""

    async def stoppable() -> None:
        task = asyncio.ensure_future(main)
        # A second signal must not interrupt the stopping that the first one began.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: task.cancelling() or task.cancel())
        await task

    try:
        uvloop.run(stoppable())
    except (asyncio.CancelledError, KeyboardInterrupt):
        sys.exit(130)


def log_tail(log_path: Path) -> str:
    """The end of what a process wrote."""
    return log_path.read_text(errors="replace")[-LOG_TAIL_CHARACTERS:]
