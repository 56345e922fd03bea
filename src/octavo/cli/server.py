"""The side of `octavo serve` that faces its users: HTTP, and what is shown on the terminal."""

import asyncio
import gc
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from rich.console import Console

from octavo.cli.access import Access
from octavo.cli.screen import ConsoleScreen, LogScreen, Place, Screen
from octavo.cli.signals import until
from octavo.cli.tracing import open_traces
from octavo.cli.wiring import build_parts, connection_bounds
from octavo.config import Settings
from octavo.engine.worker import WorkerEngine
from octavo.prompting.markers import markers_of
from octavo.server.drain import Drain
from octavo.server.http_server import HttpServer
from octavo.server.listener import Listener
from octavo.server.refusals import Refusals
from octavo.streaming import ContentFilter

HEALTH_INTERVAL = 0.1
LAST_WORDS = 0.7
"""Seconds for answers to leave the process after they have been ended."""
REFUSAL_TIME = 0.2
"""Seconds in which requests that were still being received or prepared are told that the server ends."""
YOUNG_OBJECTS = 20_000
"""After so many new objects cycles are looked for; a stream of tokens makes many, and hardly a cycle."""


class Server:
    """Made in any thread, used on the engine's event loop."""

    def __init__(
        self,
        settings: Settings,
        access: Access,
        file: Path | None,
        engine: WorkerEngine,
        listener: Listener,
        content_filter: ContentFilter | None,
    ) -> None:
        """file: the model's, None for the scripted engine. Raises ConfigError."""
        self._closing = ExitStack()
        parts = build_parts(settings, access, file, engine, content_filter, open_traces(self._closing))
        self._engine = engine
        self._listener = listener
        self._service = parts.service
        self._prompt_log = parts.prompt_log
        self._first_adapters = parts.first_adapters
        refusals = Refusals(parts.metrics.count_refusal)
        self._drain = Drain(parts.app, refusals)
        self._http = HttpServer(self._drain, connection_bounds(settings), refusals)
        parts.metrics.show_connections(lambda: self._http.num_connections)
        self._place = Place(parts.model_id, file, listener.url, listener.is_loopback, settings.has_keys)
        self._screen: Screen = (
            LogScreen() if settings.log_json else ConsoleScreen(Console(stderr=True, highlight=False))
        )

    def start(self, on_end: Callable[[], None]) -> None:
        """Answer requests from now on. on_end: for when that ends, which it does by `stop` or with an error."""
        self._task = asyncio.create_task(self._serve())
        self._task.add_done_callback(lambda _: on_end())

    async def welcome(self) -> None:
        """Show how the model loads and then what is served. Raises ModelLoadError."""
        self._screen.opening(self._place)
        ready = asyncio.create_task(self._engine.wait_ready())
        try:
            with self._screen.loading(self._place) as show:
                while not ready.done():
                    show(self._engine.health())
                    await asyncio.wait({ready}, timeout=HEALTH_INTERVAL)
            await ready
            await self._first_adapters.load()
            await asyncio.to_thread(markers_of, self._engine.vocabulary)  # which the first request would wait for
        finally:
            ready.cancel()
        _spare_garbage_collection()
        self._screen.welcome(self._place, self._engine.info)

    async def drain(self, seconds: float) -> None:
        """Let requests end; those that still run after so many seconds are cancelled, and get a moment to say so."""
        if not await self._drained(seconds):
            self._service.cancel_all()
            if not await self._drained(LAST_WORDS):
                self._drain.refuse_unanswered()
                await self._drained(REFUSAL_TIME)

    async def stop(self, force: asyncio.Event) -> None:
        """Close the connections, then the prompt log. Both get a moment, or none when `force` happens."""
        self._http.stop(at_once=force.is_set())
        try:
            await self._task
            await until(force, self._drained(LAST_WORDS))  # what was broken off leaves its row
        finally:
            if self._prompt_log is not None:
                await until(force, self._prompt_log.close())
            if not force.is_set():
                await asyncio.to_thread(self._closing.close)

    async def _serve(self) -> None:
        if self._prompt_log is not None:
            await self._prompt_log.start()
        await self._http.serve(sockets=[self._listener.sock])

    async def _drained(self, seconds: float) -> bool:
        """Whether all requests are over and their answers read within so many seconds; new ones are refused."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._drain.drained()
                await self._http.answers_read()
            return True
        return False


def _spare_garbage_collection() -> None:
    """What is there now stays: looking through all of it again and again would take a fifth of a busy server's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
