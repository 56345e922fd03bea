"""`octavo serve`: a server's life, from the open port to the last request.

The engine's process comes first. What answers HTTP is imported and built while that process loads the model, which is
why this module imports little.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

import uvloop

from octavo.cli.engines import build_engine, model_file
from octavo.cli.filters import build_content_filter
from octavo.cli.signals import StopSignals
from octavo.config import Settings
from octavo.engine.worker import WorkerEngine
from octavo.server.listener import listen
from octavo.telemetry import configure_logging

if TYPE_CHECKING:
    from octavo.cli.server import Server

log = logging.getLogger("octavo.serve")

SIGNAL_EXIT = 128


def serve(settings: Settings) -> int:
    """Serve until a signal comes; returns the exit code. Raises ConfigError and ModelLoadError."""
    _hide(settings.api_key)
    configure_logging(settings.log_level, settings.log_json)
    file, content_filter = model_file(settings), build_content_filter(settings)
    engine = build_engine(settings, file)
    listener = listen(settings.host, settings.port)

    def build_server() -> "Server":
        from octavo.cli.server import Server

        return Server(settings, file, engine, listener, content_filter)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(engine, build_server, settings.drain_timeout))


def _hide(keys: Sequence[str]) -> None:
    """Keys of the command line, which every user of the machine could read there."""
    if keys:
        from setproctitle import setproctitle

        setproctitle("octavo serve")


async def _serve(engine: WorkerEngine, build_server: Callable[[], "Server"], drain_timeout: float) -> int:
    signals = StopSignals()
    signals.install()
    await engine.start()
    log.debug("the engine is started")
    try:
        server = await asyncio.to_thread(build_server)
    except BaseException:
        await engine.close()
        raise
    log.debug("the application is built")
    return await _run(server, engine, signals, drain_timeout)


async def _run(server: "Server", engine: WorkerEngine, signals: StopSignals, drain_timeout: float) -> int:
    server.start(on_end=signals.stop.set)
    try:
        await _until(signals.stop, server.welcome())
        await signals.stop.wait()
        await _until(signals.force, server.drain(drain_timeout))
    finally:
        await _until(signals.force, engine.close())
        await server.stop(at_once=signals.force.is_set())
    return SIGNAL_EXIT + signals.last if signals.force.is_set() and signals.last else 0


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
