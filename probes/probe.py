"""The two kinds of probes, as data."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from probes.bench import Bench
from probes.counts import Counts
from probes.target import Target

MIB = 2**20
MAX_GROWTH = 64 * MIB


@dataclass(frozen=True, slots=True)
class Attack:
    """A load on one server that must stand it, in a process of its own, beside the healthy client and the sampler.

    flags: of the server; `{folder}` in them is an empty folder. engine: scripted, or llama on the demo model.
    keys: that the server is told to know. max_growth: bytes of memory above rest, at the worst moment.
    is_compared: whether there is a control, the same attack on a server that is not ours.
    why_not: a reason for which it cannot run here; "" where it can.
    """

    name: str
    attack: Callable[[Target], Coroutine[Any, Any, Counts]]
    flags: tuple[str, ...] = ()
    engine: str = "scripted"
    keys: tuple[str, ...] = ()
    max_growth: int = MAX_GROWTH
    is_compared: bool = True
    why_not: Callable[[], str] = lambda: ""


@dataclass(frozen=True, slots=True)
class Drill:
    """Something that starts servers itself, because it ends them, or needs more than one."""

    name: str
    drill: Callable[[Bench], Counts]
    flags: tuple[str, ...] = ()
    why_not: Callable[[], str] = lambda: ""


Probe = Attack | Drill


@dataclass(frozen=True, slots=True)
class Control:
    """A guard, a probe of it, and the flags that open it wide: with them the probe must fail."""

    guard: str
    probe: str
    flags: tuple[str, ...]
    keys: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """share: of the full sizes, where no group is named; 0 leaves it out."""

    name: str
    probes: tuple[Probe, ...]
    controls: tuple[Control, ...] = ()
    share: float = 1.0

    def probe_named(self, name: str) -> Probe:
        return next(probe for probe in self.probes if probe.name == name)
