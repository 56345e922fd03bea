"""`octavo serve`: a server's life, from the open port to the last request."""

import asyncio
from collections.abc import Coroutine, Generator
from contextlib import contextmanager, suppress
from typing import Any

import uvicorn
import uvloop
from rich.console import Console

from octavo.cli.drain import Drain
from octavo.cli.listener import BACKLOG, Listener, listen
from octavo.cli.screen import ConsoleScreen, LogScreen, Place, Screen
from octavo.cli.signals import StopSignals
from octavo.cli.wiring import Parts, build_parts
from octavo.config import Settings
from octavo.service import GenerationService
from octavo.telemetry import configure_logging

KEEP_ALIVE = 30
"""Seconds. Longer than clients keep a connection for later use, so that theirs is the side that closes."""
LAST_WORDS = 1
"""Seconds for answers to leave the process after they have been ended."""
HEALTH_INTERVAL = 0.1
SIGNAL_EXIT = 128


def serve(settings: Settings) -> int:
    """Serve until a signal comes; returns the exit code. Raises ConfigError and ModelLoadError."""
    configure_logging(settings.log_level, settings.log_json)
    parts = build_parts(settings)
    listener = listen(settings.host, settings.port)
    screen: Screen = LogScreen() if settings.log_json else ConsoleScreen(Console(stderr=True, highlight=False))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(parts, listener, screen, settings.drain_timeout))


async def _serve(parts: Parts, listener: Listener, screen: Screen, drain_timeout: float) -> int:
    signals = StopSignals()
    signals.install()
    drain = Drain(parts.app)
    server = HttpServer(drain)
    await parts.engine.start()
    http = asyncio.create_task(server.serve(sockets=[listener.sock]))
    http.add_done_callback(lambda _: signals.stop.set())  # it does not end by itself, or else with an error
    place = Place(parts.model_id, parts.file, listener.url, listener.is_loopback)
    try:
        await _until(signals.stop, _start(parts, place, screen))
        await signals.stop.wait()
        await _until(signals.force, _drain(drain, parts.service, drain_timeout))
    finally:
        await _until(signals.force, parts.engine.close())
        server.stop(at_once=signals.force.is_set())
        await http
    return SIGNAL_EXIT + signals.last if signals.force.is_set() and signals.last else 0


class HttpServer(uvicorn.Server):
    """uvicorn with our settings. Signals are not its business."""

    def __init__(self, app: Drain) -> None:
        config = uvicorn.Config(
            app,
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,  # the API logs one line per request itself
            proxy_headers=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=LAST_WORDS,
        )
        super().__init__(config)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    def stop(self, *, at_once: bool) -> None:
        """End `serve`; open connections get a moment, or none."""
        if at_once:
            self.config.timeout_graceful_shutdown = 0
            self.force_exit = True
        self.should_exit = True


async def _start(parts: Parts, place: Place, screen: Screen) -> None:
    """Show how the model loads and then what is served. Raises ModelLoadError."""
    screen.opening(place)
    ready = asyncio.create_task(parts.engine.wait_ready())
    try:
        with screen.loading(place) as show:
            while not ready.done():
                show(parts.engine.health())
                await asyncio.wait({ready}, timeout=HEALTH_INTERVAL)
        await ready
    finally:
        ready.cancel()
    screen.welcome(place, parts.engine.info)


async def _drain(drain: Drain, service: GenerationService, seconds: float) -> None:
    """Let requests end; those that still run after so many seconds are cancelled, and get a moment to say so."""
    try:
        await asyncio.wait_for(drain.drained(), seconds)
    except TimeoutError:
        service.cancel_all()
        with suppress(TimeoutError):
            await asyncio.wait_for(drain.drained(), LAST_WORDS)


async def _until(event: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Do the work, and give it up when the event happens first."""
    task = asyncio.create_task(work)
    waiting = asyncio.create_task(event.wait())
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
    finally:
        task.cancel()
        waiting.cancel()
