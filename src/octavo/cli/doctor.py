"""`octavo doctor`: what this machine has, what was chosen for it and why, and whether the engine works."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from octavo.cli.engines import build_engine, model_file
from octavo.cli.library import Library, ask_library
from octavo.config import Settings
from octavo.engine.base import EngineInfo
from octavo.engine.runners.llama_cpp.machine import Machine
from octavo.engine.worker import WorkerEngine
from octavo.errors import ModelLoadError

MAX_DEATHS = 2
"""Of the engine's process while it loads: once as configured, once with its fall-back."""
HEALTH_INTERVAL = 0.1
ALREADY_SAID = ("machine", "library")
"""Parts of an engine's description that come first here, because they matter most where there is no engine."""


@dataclass(frozen=True, slots=True)
class SelfTest:
    """info: None where the engine never became ready. num_deaths: of its process before it was."""

    info: EngineInfo | None
    num_deaths: int
    fault: str = ""

    @property
    def uses_fallback(self) -> bool:
        return self.info is not None and self.num_deaths > 0


def examine(settings: Settings) -> int:
    """Print the report; returns 0 when the engine passes its self-test, 1 otherwise. Raises ConfigError."""
    file = model_file(settings)
    machine, library = Machine.detect(), ask_library()
    _print("processor", machine.summary)
    _print("llama.cpp", library.version or f"cannot be used: {library.fault}")
    if library.features:
        _print("library uses", library.features)
    _print("model file", str(file) if file else "none, the scripted engine")
    test = asyncio.run(_run_self_test(build_engine(settings, file)))
    _print("self-test", verdict(test))
    _print("AMX", explain_amx(machine, library, test))
    for line in test.info.description if test.info else ():
        name, _, value = line.partition(": ")
        if name not in ALREADY_SAID:
            _print(name, value)
    return 0 if test.info else 1


def verdict(test: SelfTest) -> str:
    if test.info is None:
        return f"FAILED: {test.fault}"
    if test.uses_fallback:
        return "passed with the fall-back: as configured, the engine's process died while it loaded"
    return "passed"


def explain_amx(machine: Machine, library: Library, test: SelfTest) -> str:
    """Whether the cure of native/amx_tile_config_cure.h is needed, and whether the library behaves as if it had it."""
    if not _amx_names(machine):
        return "the processor has none; no cure is needed"
    if not library.uses_amx:
        return "the processor has it, the library was built without; no cure is needed"
    if test.uses_fallback or test.info is None:
        return (
            "the processor and the library have it, and the self-test failed with it: the library was probably built "
            "without the cure; native/install_llama_cpp.sh builds it with the cure"
        )
    return "the processor and the library have it, and the self-test passed with it: the library is sound"


def _amx_names(machine: Machine) -> Sequence[str]:
    return [name for name in machine.features if name.startswith("amx_")]


async def _run_self_test(engine: WorkerEngine) -> SelfTest:
    """Load the model as `octavo serve` would; the engine tests itself with a real decode before it is ready."""
    await engine.start()
    ready = asyncio.create_task(engine.wait_ready())
    try:
        while not ready.done() and engine.health().num_restarts < MAX_DEATHS:
            await asyncio.wait({ready}, timeout=HEALTH_INTERVAL)
        health = engine.health()
        if not ready.done():
            return SelfTest(None, health.num_restarts, health.message)
        await ready
        return SelfTest(engine.info, health.num_restarts)
    except ModelLoadError as error:
        return SelfTest(None, engine.health().num_restarts, error.message)
    finally:
        ready.cancel()
        await engine.close()


def _print(name: str, value: str) -> None:
    print(f"{name + ':':<19}{value}", flush=True)
