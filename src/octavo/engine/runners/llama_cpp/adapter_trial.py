"""Tries an adapter in a process of its own: llama.cpp ends the process that reads some broken files."""

import json
import logging
import subprocess
import sys
from pathlib import Path

import numpy as np

from octavo.engine.runners.llama_cpp import binding
from octavo.engine.runners.llama_cpp.adapters import load_adapter
from octavo.errors import AdapterRefused

SECONDS = 120
REASON = "failed to apply lora adapter: "
"""What llama.cpp's log says before why."""
SETTINGS = binding.ContextSettings(
    context_length=32, num_slots=1, num_threads=1, max_batch_tokens=8, cache_type_k="f16", cache_type_v="f16"
)


def try_adapter(model: Path, adapter: Path) -> None:
    """Load it beside the model and compute a token with it, elsewhere. Raises AdapterRefused.

    The model's weights are those in the system's file cache, so this takes little memory.
    """
    command = (sys.executable, "-m", "octavo.engine.runners.llama_cpp.adapter_trial", str(model), str(adapter))
    try:
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise AdapterRefused(f"The adapter could not be tried within {SECONDS} s.") from None
    if done.returncode != 0:
        raise AdapterRefused("The file is broken: the process that tried it as an adapter did not survive that.")
    if (reason := json.loads(done.stdout)) is not None:
        raise AdapterRefused(f"The file is no adapter for this model: {reason}.")


def _trial(model_path: Path, adapter_path: Path) -> str | None:
    """What is wrong with the adapter."""
    binding.initialize()
    model = binding.Model(model_path, use_extra_buffers=False, on_progress=lambda _: None)
    context = binding.Context(model, SETTINGS)
    reasons = _Reasons()
    binding.log.addHandler(reasons)
    try:
        adapter = load_adapter(model, adapter_path)
    except AdapterRefused as error:
        return reasons.last or error.message.rstrip(".")
    context.use_adapter(adapter, 1.0)
    zeros = np.zeros(1, np.int32)
    if context.decode(zeros, zeros, zeros, np.ones(1, np.bool_)) != 0:
        return "the model cannot compute with it"
    return None if np.isfinite(context.logits(1)).all() else "with it the model computes what are not numbers"


class _Reasons(logging.Handler):
    """Remembers why llama.cpp refused the last adapter."""

    def __init__(self) -> None:
        super().__init__()
        self.last = ""

    def emit(self, record: logging.LogRecord) -> None:
        _, found, reason = record.getMessage().partition(REASON)
        self.last = reason if found else self.last


if __name__ == "__main__":
    print(json.dumps(_trial(Path(sys.argv[1]), Path(sys.argv[2]))))
