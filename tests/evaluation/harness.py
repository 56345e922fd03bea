"""The evaluation harness (lm-eval) as a program, with the tasks of this folder and no network."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TASKS = HERE / "tasks"
SECONDS = 600
"""Until a program that should have ended is a failure; nothing is measured with it."""
LAST_OF_LOG = 4000

Sample = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What the harness found.

    scores: task → "metric,filter" → value.
    samples: task → one object for each item, in the order of the data.
    """

    scores: dict[str, dict[str, float]]
    samples: dict[str, list[Sample]]

    def answers(self, task: str) -> list[str]:
        """The generated text of each item."""
        return [sample["resps"][0][0] for sample in self.samples[task]]

    def logprobs(self, task: str) -> list[list[float]]:
        """The log-probability of each choice of each item."""
        return [[float(logprob) for [[logprob, _]] in sample["resps"]] for sample in self.samples[task]]

    def are_greedy(self, task: str) -> list[bool]:
        """Whether each item's ending is what greedy decoding would have made."""
        return [sample["resps"][0][0][1] == "True" for sample in self.samples[task]]

    def rolling_logprobs(self, task: str) -> list[float]:
        """The log-probability of each item's whole text."""
        return [float(sample["resps"][0][0]) for sample in self.samples[task]]


def evaluate(
    model: str, model_args: Mapping[str, object], tasks: Sequence[str], *options: str, folder: Path
) -> Evaluation:
    """Run the harness with one of its models. `folder` is for what it writes."""
    pairs = ",".join(f"{name}={value}" for name, value in model_args.items())
    found = folder / "found"
    what = ("--model", model, "--model_args", pairs, "--tasks", *tasks, "--include_path", str(TASKS), *options)
    run_python("-m", "lm_eval", "run", *what, "--output_path", str(found), "--log_samples", folder=folder)
    return Evaluation(_scores(found), {task: _samples(found, task) for task in tasks})


def run_python(*arguments: str, folder: Path) -> None:
    """A Python program, to its end: offline, on one thread, in the folder to which the tasks' data are relative.

    `folder` is for its caches.
    """
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "NO_PROXY": "127.0.0.1"}
    own = {"HF_HOME": str(folder), "PYTHONPATH": str(HERE.parent), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        (sys.executable, *arguments),
        cwd=TASKS,
        env=os.environ | offline | own,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-LAST_OF_LOG:]


def _scores(folder: Path) -> dict[str, dict[str, float]]:
    [file] = folder.rglob("results_*.json")
    scores: dict[str, dict[str, float]] = json.loads(file.read_text())["results"]
    return scores


def _samples(folder: Path, task: str) -> list[Sample]:
    [file] = folder.rglob(f"samples_{task}_*.jsonl")
    samples = [json.loads(line) for line in file.read_text().splitlines()]
    return sorted(samples, key=lambda sample: int(sample["doc_id"]))
