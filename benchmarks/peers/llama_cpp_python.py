"""llama-cpp-python's own server: one sequence at a time, on the very library that Octavo runs on."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import requires
from pathlib import Path

from benchmarks.contenders import Contender, Room, ServerContender
from benchmarks.peers.base import PeerUnavailable
from benchmarks.peers.environment import Environment
from benchmarks.processes import ServerCommand
from benchmarks.workloads import Workload

PACKAGE = "llama-cpp-python"
MAX_STREAMS = 8
"""More would only wait for each other."""


@dataclass(frozen=True, slots=True)
class LlamaCppPythonServer:
    name: str = "llama-cpp-python"

    @property
    def _environment(self) -> Environment:
        needs = [need.partition(";") for need in requires(PACKAGE) or ()]
        return Environment("llama-cpp-python-server", tuple(need for need, _, when in needs if '"server"' in when))

    def install(self) -> str:
        environment = self._environment
        environment.install()
        # The library itself is the one that was built for this processor: Octavo's packages, behind the server's own.
        octavos = Path(sysconfig.get_path("purelib"))
        if not (octavos / "llama_cpp").exists():
            raise PeerUnavailable("llama-cpp-python is not installed beside Octavo")
        [packages] = environment.folder.glob("lib/python*/site-packages")
        (packages / "octavo.pth").write_text(f"{octavos}\n")
        return environment.version(PACKAGE)

    def contenders(self, model: Path, workload: Workload) -> Sequence[Contender]:
        if workload.is_raw or workload.is_repetitive:
            return ()
        python = str(self._environment.python)

        def command(room: Room) -> ServerCommand:
            # Half of the processors and answers that end where the next request comes are its defaults.
            flags = ("--n_threads", str(os.cpu_count() or 1), "--interrupt_requests", "False")
            names = ("--model", str(model), "--model_alias", model.stem, "--host", "127.0.0.1", "--port", "{port}")
            context = ("--n_ctx", str(room.context_length))
            return ServerCommand(
                self.name, (python, "-m", "llama_cpp.server", *names, *context, *flags), ready_path="/v1/models"
            )

        return [ServerContender(self.name, command, max_streams=MAX_STREAMS, takes_n=False)]
