"""Any engine in a supervised child process."""

from octavo.engine.worker.engine import WorkerEngine

__all__ = ["WorkerEngine"]
