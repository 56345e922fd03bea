"""What transformers says, asked for in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from support.processes import clean_environment

PROGRAM = Path(__file__).with_name("hugging_face.py")
PROGRAM_SECONDS = 400


@dataclass(frozen=True, slots=True)
class Scores:
    """logprobs: of a sequence's tokens but the first. best: the most probable tokens in their places."""

    logprobs: NDArray[np.float64]
    best: NDArray[np.int64]


def ask_transformers(model: Path, sequences: Sequence[tuple[int, ...]]) -> list[Scores]:
    """The scores of each sequence under the dequantised weights of a GGUF file."""
    done = subprocess.run(
        (sys.executable, str(PROGRAM)),
        input=json.dumps({"model": str(model), "sequences": sequences}),
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Scores(np.array(each["logprobs"]), np.array(each["best"])) for each in json.loads(done.stdout)]
