"""The child's side: an engine in the main thread, its I/O in a helper thread.

llama.cpp's OpenMP threads spin well only when model loading and decoding happen in the process' main thread, so the
event loop that speaks with the parent lives in the other one.
"""

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from octavo.core.adapters import Adapter
from octavo.engine.base import HostedEngine
from octavo.engine.end_with_parent import end_with_parent
from octavo.engine.specs import EngineSpec
from octavo.engine.worker.conversation import Conversation
from octavo.engine.worker.frames import Load, LoadFailed, Progress, ToParent, read_for_child
from octavo.errors import OctavoError

LoadEngine = Callable[[EngineSpec, Callable[[float], None]], HostedEngine]
"""Builds the engine that a spec describes, reporting progress from 0 to 1. Raises ModelLoadError."""

T = TypeVar("T")

log = logging.getLogger("octavo.worker")

SWITCH_INTERVAL = 0.0005
LOAD_FAILED_EXIT = 3


def host(sock: socket.socket, load_engine: LoadEngine) -> int:
    """Serve the parent at the other end of `sock` with the engine it asks for; returns the exit code."""
    end_with_parent()  # and elsewhere than on Linux the closed socket says that the parent is gone
    for number in (signal.SIGINT, signal.SIGTERM):  # to the whole process group, as terminals and systemd send them:
        signal.signal(number, signal.SIG_IGN)  # the parent drains first, and then ends this process
    sys.setswitchinterval(SWITCH_INTERVAL)  # the step loop must not wait 5 ms for the I/O thread after each step
    link = Link(sock)
    load = link.start()
    try:
        engine = load_engine(load.spec, lambda fraction: link.send(Progress(fraction)))
    except OctavoError as error:
        return link.give_up(error.message)
    except Exception:  # a fault of ours or of the file; trying again would find it again
        log.exception("the model cannot be loaded")
        return link.give_up("The engine failed while it loaded the model; its log says why.")
    lost = tuple(adapter.key for adapter in load.adapters if not _is_restored(engine, adapter))
    link.serve(engine, lost)
    engine.run()
    link.finish()
    return 0


def _is_restored(engine: HostedEngine, adapter: Adapter) -> bool:
    """Where an adapter is not there any more, its requests fail; the others need not."""
    try:
        engine.restore_adapter(adapter)
    except OctavoError as error:
        log.error("the adapter %s is lost: %s", adapter.key, error.message)
        return False
    return True


class Link:
    """The connection to the parent, on an event loop in a thread of its own."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="worker-io", daemon=True)

    def start(self) -> Load:
        """Connect, wait for the parent's wish, and listen from then on: a loading child, too, hears that it is over."""
        self._thread.start()
        return self._call(self._connect())

    def send(self, message: ToParent) -> None:
        """From any thread."""
        self._loop.call_soon_threadsafe(self._conversation.send, message)

    def serve(self, engine: HostedEngine, lost_adapters: tuple[str, ...]) -> None:
        self._call(self._conversation.serve(engine, lost_adapters))

    def give_up(self, reason: str) -> int:
        """Say why there will be no engine; returns the exit code."""
        self.send(LoadFailed(reason))
        self.finish()
        return LOAD_FAILED_EXIT

    def finish(self) -> None:
        """Let the parent have what was sent, and hang up."""
        self._call(self._conversation.finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _connect(self) -> Load:
        reader, writer = await asyncio.open_unix_connection(sock=self._sock)
        message = await read_for_child(reader)
        if not isinstance(message, Load):
            os._exit(0)  # the parent is gone before it said anything
        self._conversation = Conversation(reader, writer)
        return message

    def _call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
