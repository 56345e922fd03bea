"""The parent's end of one child process."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress

from octavo.core.adapters import Adapter
from octavo.engine.specs import EngineSpec
from octavo.engine.worker.frames import Load, ToChild, ToParent, pack, read_for_parent

MODULE = "octavo.engine"
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1"}
"""Of the child, where the parent's does not say otherwise. numpy would start a thread per processor for products of
matrices, of which there are none; each would spin for a tenth of a second beside the loading of the model."""


class ChildProcess:
    """Started by `spawn`, over when `receive` returns None; `stop` ends it in any case."""

    def __init__(
        self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer

    @classmethod
    async def spawn(cls, spec: EngineSpec, adapters: tuple[Adapter, ...] = ()) -> "ChildProcess":
        ours, theirs = socket.socketpair()
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                MODULE,
                str(theirs.fileno()),
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                env=ENVIRONMENT | os.environ,
            )
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        child = cls(process, reader, writer)
        child.send(Load(spec, adapters))
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, message: ToChild) -> None:
        """Messages to a child that is gone are lost; `receive` tells."""
        if not self._writer.is_closing():
            self._writer.write(pack(message))

    async def receive(self) -> ToParent | None:
        return await read_for_parent(self._reader)

    async def stop(self, *, grace: float) -> str:
        """Make sure that it has ended, after `grace` seconds by force; returns how it ended, for people."""
        try:
            await asyncio.wait_for(self._process.wait(), grace)
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        self._writer.close()
        return _describe_exit(self._process.returncode or 0)


def _describe_exit(returncode: int) -> str:
    if returncode >= 0:
        return f"exit code {returncode}"
    try:
        return signal.Signals(-returncode).name
    except ValueError:
        return f"signal {-returncode}"
