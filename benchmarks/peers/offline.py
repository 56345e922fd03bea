"""Engines that are measured without a server: they pay no HTTP."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.contenders import Contender
from benchmarks.offline import OfflineContender
from benchmarks.peers.base import PEERS
from benchmarks.peers.environment import Environment
from benchmarks.workloads import Workload

RUNNERS = Path(__file__).parent / "runners"
CONVERTED_MODELS = PEERS / "models"


@dataclass(frozen=True, slots=True)
class OfflineEngine:
    """An engine in an environment of its own, driven by a script in `runners`. package: whose version counts."""

    name: str
    package: str
    script: str
    environment: Environment

    def install(self) -> str:
        self.environment.install()
        return self.environment.version(self.package)

    def contenders(self, model: Path, workload: Workload) -> Sequence[Contender]:
        if workload.is_raw or workload.is_repetitive:
            return ()
        program = (str(self.environment.python), str(RUNNERS / self.script))
        return [OfflineContender(f"{self.name}, offline", program, model, CONVERTED_MODELS)]


@dataclass(frozen=True, slots=True)
class RawLoop:
    """llama.cpp alone, driven by `benchmarks.raw_loop` with Octavo's settings: what Octavo could reach at most."""

    name: str = "raw-loop"

    def install(self) -> str:
        return f"llama-cpp-python {version('llama-cpp-python')}"

    def contenders(self, model: Path, workload: Workload) -> Sequence[Contender]:
        if not workload.is_raw:
            return ()
        program = (sys.executable, "-m", "benchmarks.raw_loop")
        return [OfflineContender("raw llama_decode loop", program, model, CONVERTED_MODELS)]
