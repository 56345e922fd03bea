"""Tries an adapter in a process of its own: llama.cpp ends the process that reads some broken files."""

import json
import logging
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np

from octavo.engine.end_with_parent import end_with_parent
from octavo.engine.own_module import own_module
from octavo.engine.runners.llama_cpp import binding
from octavo.engine.runners.llama_cpp.adapters import load_adapter
from octavo.errors import AdapterRefused

MODULE = "octavo.engine.runners.llama_cpp.adapter_trial"
SECONDS = 120
NUM_LOGGED_LINES = 20
REASON = "failed to apply lora adapter: "
"""What llama.cpp's log says before why."""
SETTINGS = binding.ContextSettings(
    context_length=32, num_slots=1, num_threads=1, max_batch_tokens=8, cache_type_k="f16", cache_type_v="f16"
)

log = logging.getLogger("octavo.adapters")


def try_adapter(model: Path, adapter: Path) -> None:
    """Load it beside the model and compute a token with it, elsewhere. Raises AdapterRefused.

    The model's weights are those in the system's file cache, so this takes little memory.
    """
    command = own_module(MODULE, str(model), str(adapter), str(os.getpid()))
    try:
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise AdapterRefused(f"The adapter could not be tried within {SECONDS} s.") from None
    if (reason := _verdict(done)) is not None:
        raise AdapterRefused(f"The file is no adapter for this model: {reason}.")


def _verdict(done: "subprocess.CompletedProcess[bytes]") -> str | None:
    """What the process that has ended found wrong. Raises AdapterRefused where it came to no verdict."""
    if done.returncode == 0:
        with suppress(ValueError):
            reason: str | None = json.loads(done.stdout)
            return reason
    last_lines = done.stderr.decode(errors="replace").splitlines()[-NUM_LOGGED_LINES:]
    log.warning("an adapter's trial ended with %d:\n%s", done.returncode, "\n".join(last_lines))
    if done.returncode < 0 and done.returncode != -signal.SIGKILL:  # which comes from outside, as when memory is short
        raise AdapterRefused("The file is broken: the process that tried it as an adapter did not survive that.")
    raise AdapterRefused("The adapter could not be tried; the server's log says why.")


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
    # The thread that started this process waits for it in `subprocess.run`, so it lives as long as it is needed.
    end_with_parent(int(sys.argv[3]))
    print(json.dumps(_trial(Path(sys.argv[1]), Path(sys.argv[2]))))
