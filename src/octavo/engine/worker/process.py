"""The parent's end of one child process."""

import asyncio
import os
import socket
import subprocess
from collections.abc import Mapping
from contextlib import suppress

from octavo.core.adapters import Adapter
from octavo.engine.own_module import own_module
from octavo.engine.specs import EngineSpec
from octavo.engine.worker.ending import Ending
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
        """Raises OSError."""
        ours, theirs = socket.socketpair()
        try:
            process = await _start(theirs)
            reader, writer = await asyncio.open_unix_connection(sock=ours)
        except BaseException:
            ours.close()  # where there is a process already, it ends at this
            raise
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

    def kill(self) -> None:
        """End it by force, and listen no more: one that the system does not let go yet says nothing either."""
        with suppress(ProcessLookupError):
            self._process.kill()
        self._writer.close()

    async def stop(self, *, grace: float) -> Ending:
        """Make sure that it has ended, after `grace` seconds by force; returns how it ended."""
        try:
            async with asyncio.timeout(grace):  # wait_for of Python 3.11 can lose a cancellation
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()
        self._writer.close()
        return Ending.of(self._process.returncode or 0)


async def _start(theirs: socket.socket) -> asyncio.subprocess.Process:
    """With its end of the socket, which nobody else has then."""
    with theirs:
        return await asyncio.create_subprocess_exec(
            *own_module(MODULE, str(theirs.fileno())),
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            env=ENVIRONMENT | _inherited(os.environ),
        )


def _inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """Without our settings, among them keys: what of them concerns a child is in its spec."""
    return {name: value for name, value in environment.items() if not name.startswith("OCTAVO_")}
