"""Which processors of this machine share a core, and which are slower by design."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

DEVICES = Path("/sys/devices")
FAST = 0.8
"""Of the fastest processor's capacity, what a processor has at least that is no efficiency core's."""


@dataclass(frozen=True, slots=True)
class Processor:
    """What a thread can run on. core: a name that it shares with the other processors of its core."""

    core: str
    is_fast: bool


def read_topology(numbers: Collection[int], devices: Path = DEVICES) -> tuple[Processor, ...]:
    """Of the processors with these numbers; of none where the kernel does not tell."""
    folders = {number: devices / "system" / "cpu" / f"cpu{number}" for number in numbers}
    cores = {number: _read(folder / "topology" / "thread_siblings_list") for number, folder in folders.items()}
    if not all(cores.values()):
        return ()
    slow = _list(_read(devices / "cpu_atom" / "cpus"))  # of Intel's hybrids, which may not tell capacities
    capacities = {number: int(_read(folder / "cpu_capacity") or 0) for number, folder in folders.items()}
    enough = FAST * max(capacities.values(), default=0)
    return tuple(Processor(cores[n], n not in slow and capacities[n] >= enough) for n in folders)


def thread_candidates(num_usable: int, processors: Collection[Processor]) -> tuple[int, ...]:
    """Numbers of threads that are worth measuring, the largest first: one per processor, one less, one per core, and
    one per fast core.

    num_usable: as many of the processors as a quota leaves.
    """
    num_cores = len({processor.core for processor in processors})
    num_fast = len({processor.core for processor in processors if processor.is_fast})
    numbers = {num_usable, num_usable - 1, num_cores, num_fast}
    return tuple(sorted((number for number in numbers if 1 <= number <= num_usable), reverse=True))


def _read(path: Path) -> str:
    """Empty where there is no such file."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _list(text: str) -> set[int]:
    """Of the numbers in the kernel's notation, such as 0-3,8."""
    ranges = (part.split("-") for part in text.split(",") if part)
    return {number for ends in ranges for number in range(int(ends[0]), int(ends[-1]) + 1)}
