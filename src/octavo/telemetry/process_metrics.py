"""What the processes take of the machine, where the system tells (/proc)."""

from collections.abc import Callable
from importlib.metadata import version
from platform import python_version

from prometheus_client import CollectorRegistry, Info, ProcessCollector


def add_process_metrics(registry: CollectorRegistry, engine_pid: Callable[[], int | None]) -> None:
    """Memory, processor time and files of this process (process_…) and of the engine's (octavo_engine_process_…).

    engine_pid: of that process now, or None.
    """
    Info("octavo_build", "What is running.", registry=registry).info(
        {"version": version("octavo"), "python": python_version()}
    )
    ProcessCollector(registry=registry)
    ProcessCollector("octavo_engine", pid=lambda: engine_pid() or "none", registry=registry)
