"""Who is measured: servers, each started for one measurement. `offline` has those that are none."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from benchmarks.load import LoadConfig, run_load
from benchmarks.processes import ServerCommand, running
from benchmarks.scenarios import Phase, Target
from benchmarks.workloads import Workload

OCTAVO = "octavo"
OCTAVO_CONTEXT = 4096
"""Tokens that each of Octavo's sequences has room for where nothing else is asked."""
WARM_UP_SEED = 1_000_003
WARM_UP_TOKENS = 8
WARM_UP_PROMPT_TOKENS = 32


@dataclass(frozen=True, slots=True)
class Room:
    """What a server must hold: sequences at a time, and tokens of each."""

    num_slots: int
    context_length: int

    @classmethod
    def of(cls, workload: Workload, num_streams: int) -> Room:
        return cls(workload.scenario.num_slots(num_streams), workload.context_length)


class Contender(Protocol):
    @property
    def name(self) -> str: ...

    def can_run(self, workload: Workload, num_streams: int) -> bool: ...

    def shown_command(self, room: Room) -> str:
        """The command as a report shows it."""

    async def measure(self, workload: Workload, num_streams: int, seed: int, log_path: Path) -> list[Phase]:
        """Start, warm up, run the scenario, stop. Raises ServerFailed, and what a scenario raises."""


@dataclass(frozen=True, slots=True)
class ServerContender:
    """A server. max_streams: more than this many would only wait. takes_n: whether it answers `n` choices."""

    name: str
    command: Callable[[Room], ServerCommand]
    max_streams: int | None = None
    takes_n: bool = True

    def can_run(self, workload: Workload, num_streams: int) -> bool:
        return self.max_streams is None or num_streams <= self.max_streams

    def shown_command(self, room: Room) -> str:
        return shown(self.command(room).arguments)

    async def measure(self, workload: Workload, num_streams: int, seed: int, log_path: Path) -> list[Phase]:
        scenario = workload.scenario
        async with running(self.command(Room.of(workload, num_streams)), log_path) as url:
            await run_load(warm_up(replace(scenario.request, url=url, seed=seed), num_streams))
            return await scenario.run(Target(url, num_streams, seed, self.takes_n))


def octavo(model: Path, flags: Sequence[str], name: str = OCTAVO) -> ServerContender:
    """Octavo; `{streams}` in a flag becomes the number of sequences."""

    def command(room: Room) -> ServerCommand:
        own = [flag.replace("{streams}", str(room.num_slots)) for flag in flags]
        context = ["--ctx", str(room.context_length)] if room.context_length > OCTAVO_CONTEXT else []
        arguments = (sys.executable, "-m", "octavo", "serve", str(model), "--port", "{port}", *context, *own)
        return ServerCommand(name, arguments, ready_path="/ready")

    return ServerContender(name, command)


def warm_up(config: LoadConfig, num_streams: int) -> LoadConfig:
    """Short requests of the same kind with other prompts, one for each stream."""
    return replace(
        config,
        num_streams=num_streams,
        num_requests=num_streams,
        prompt_tokens=WARM_UP_PROMPT_TOKENS,
        shared_prefix_tokens=0,
        max_tokens=WARM_UP_TOKENS,
        texts=(),
        seed=config.seed + WARM_UP_SEED,
    )


def shown(arguments: Sequence[str]) -> str:
    """A command as the report shows it: program and model without their folders."""
    return shlex.join(Path(argument).name if argument.startswith("/") else argument for argument in arguments)
