"""Octavo itself, with its speculation off: what the speculation brings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contenders import Contender, octavo
from benchmarks.workloads import Workload

FLAGS = ("--no-speculation",)


@dataclass(frozen=True, slots=True)
class WithoutSpeculation:
    name: str = "no-speculation"

    def install(self) -> str:
        return "the same"

    def contenders(self, model: Path, workload: Workload) -> Sequence[Contender]:
        return [octavo(model, FLAGS, "octavo (no speculation)")] if workload.is_repetitive else ()
