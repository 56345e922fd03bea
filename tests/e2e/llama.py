"""The real engine without a server, and llama.cpp without the engine."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from octavo.engine.specs import LlamaSpec
from octavo.engine.worker import WorkerEngine
from support.processes import clean_environment
from support.workers import running_worker

from .wire import CONTEXT_LENGTH, MODEL_FILE, NUM_SLOTS

REFERENCE = Path(__file__).with_name("reference.py")
REFERENCE_SECONDS = 240


@asynccontextmanager
async def running_engine() -> AsyncIterator[WorkerEngine]:
    """The engine as the server of these tests has it, ready."""
    spec = LlamaSpec(str(MODEL_FILE), context_length=CONTEXT_LENGTH, num_slots=NUM_SLOTS)
    async with running_worker(spec) as engine:
        yield engine


def ask_reference(**request: Any) -> Any:
    """What llama.cpp alone says; see `reference`."""
    done = subprocess.run(
        (sys.executable, str(REFERENCE)),
        input=json.dumps({"model": str(MODEL_FILE), **request}),
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=REFERENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
