"""`octavo serve`: a server's life, from the open port to the last request.

The engine's process comes first. What answers HTTP is imported and built while that process loads the model, which is
why this module imports little.
"""

import asyncio
import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import uvloop

from octavo.cli.access import build_access
from octavo.cli.engines import build_engine, model_file
from octavo.cli.filters import build_content_filter
from octavo.cli.signals import StopSignals, until
from octavo.config import Settings
from octavo.engine.worker import WorkerEngine
from octavo.server.listener import listen
from octavo.telemetry import configure_logging

if TYPE_CHECKING:
    from octavo.cli.server import Server

log = logging.getLogger("octavo.serve")

SIGNAL_EXIT = 128
SWITCH_INTERVAL = 0.0005
"""Seconds. Work of some length is done in threads; with Python's 5 ms, each message of a stream would wait so long for
one of them, several times on its way."""


def serve(settings: Settings) -> int:
    """Serve until a signal comes; returns the exit code. Raises ConfigError and ModelLoadError."""
    configure_logging(settings.log_level, settings.log_json)
    access = build_access(settings)
    file, content_filter = model_file(settings), build_content_filter(settings)
    engine = build_engine(settings, file)
    listener = listen(settings.host, settings.port)

    def build_server() -> "Server":
        from octavo.cli.server import Server

        return Server(settings, access, file, engine, listener, content_filter)

    sys.setswitchinterval(SWITCH_INTERVAL)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(engine, build_server, settings.drain_timeout))


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
        await until(signals.stop, server.welcome())
        await signals.stop.wait()
        await until(signals.force, server.drain(drain_timeout))
    finally:
        await until(signals.force, engine.close())
        await server.stop(signals.force)
    return SIGNAL_EXIT + signals.last if signals.force.is_set() and signals.last else 0
