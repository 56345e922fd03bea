"""The engines by the kind of their spec: one line each. Wiring of the worker process; imported nowhere else."""

from collections.abc import Callable

from octavo.engine.base import HostedEngine
from octavo.engine.specs import EngineSpec, LlamaSpec, ScriptedSpec


def load_engine(spec: EngineSpec, on_progress: Callable[[float], None]) -> HostedEngine:
    """Build the engine in the calling thread. Raises ModelLoadError."""
    # Imported late: a worker needs the libraries of one engine only.
    match spec:
        case LlamaSpec():
            from octavo.engine.llama import load_llama

            return load_llama(spec, on_progress)
        case ScriptedSpec():
            from octavo.engine.scripted import load_scripted

            return load_scripted(spec)
