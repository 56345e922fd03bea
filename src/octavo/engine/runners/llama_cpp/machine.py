"""What this machine has, and what is chosen for it: cache types, threads, context and slots.

Each choice comes with its reason, for `octavo doctor` and the start-up screen. `python -m benchmarks.steps` measures
the cache types against each other.
"""

import math
import os
from dataclasses import dataclass
from pathlib import Path

from octavo.engine.runners.llama_cpp.topology import Processor, read_topology, thread_candidates

GIB = 2**30
DEFAULT_SLOTS = 32
DEFAULT_CONTEXT = 4096
CACHE_SHARE = 0.25
"""Of the machine's memory, for the KV cache."""
PREFIX_CACHE_SHARE = 0.1
"""Of the machine's memory, for what is kept of requests that have left the KV cache."""
BYTES_PER_NUMBER = {"f32": 4.0, "f16": 2.0, "bf16": 2.0, "q8_0": 34 / 32, "q4_0": 18 / 32}


@dataclass(frozen=True, slots=True)
class Machine:
    """num_cores: processors. features: instruction sets by the names that the kernel gives them. memory: bytes.
    processors: all that this process may run on, of which a quota may leave it fewer; none where nothing is told.
    """

    num_cores: int
    memory: int
    features: frozenset[str]
    processors: tuple[Processor, ...] = ()

    @classmethod
    def detect(cls) -> "Machine":
        """What this process may use: a container may have less than the machine."""
        numbers = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
        num_cores = len(numbers)
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        quota, period = _cgroup("cpu.max", 2)
        (memory_limit,) = _cgroup("memory.max", 1)
        return cls(
            num_cores=min(num_cores, math.ceil(quota / period)) if quota and period else num_cores,
            memory=min(memory, memory_limit) if memory_limit else memory,
            features=_cpu_features(),
            processors=read_topology(numbers),
        )

    @property
    def thread_candidates(self) -> tuple[int, ...]:
        """Numbers of threads that are worth measuring, the largest first."""
        return thread_candidates(self.num_cores, self.processors)

    @property
    def summary(self) -> str:
        known = ("avx2", "f16c", "avx512f", "avx512_bf16", "avx512_vnni", "amx_tile", "amx_int8", "neon", "asimd")
        has = " ".join(name for name in known if name in self.features)
        return f"{self.num_cores} processors, {self.memory / GIB:.1f} GiB, {has or 'instruction sets not known'}"


@dataclass(frozen=True, slots=True)
class CacheTypes:
    """ggml type names of the KV cache, and why these."""

    keys: str
    values: str
    reason: str

    def bytes_per_token(self, cache_width: int) -> float:
        """For a model whose cache holds `cache_width` numbers per token."""
        return cache_width / 2 * (BYTES_PER_NUMBER[self.keys] + BYTES_PER_NUMBER[self.values])


def preferred_cache_types(machine: Machine) -> tuple[CacheTypes, ...]:
    """By the dot products that the processor has: attention over the cache is up to half of a step.

    Best first; llama.cpp refuses quantized keys, or keys unlike the values, for some models.
    """
    if "avx512_bf16" in machine.features:
        return (
            CacheTypes("q8_0", "bf16", "the processor has AVX-512 BF16 dot products"),
            CacheTypes("bf16", "bf16", "AVX-512 BF16 dot products; this model does not allow quantized keys"),
        )
    return (CacheTypes("f16", "f16", "llama.cpp's default; no BF16 dot products here"),)


def choose_threads(machine: Machine) -> int:
    """At most; whether fewer are faster is measured with the model (`thread_choice`)."""
    return machine.num_cores


def choose_context_length(trained: int) -> int:
    return min(trained, DEFAULT_CONTEXT)


def choose_slots(machine: Machine, *, bytes_per_slot: float) -> int:
    """As many as the default, unless their caches would take more than their share of the memory."""
    if bytes_per_slot == 0:
        return DEFAULT_SLOTS
    return max(1, min(DEFAULT_SLOTS, int(machine.memory * CACHE_SHARE / bytes_per_slot)))


def choose_prefix_cache(machine: Machine) -> int:
    """Bytes, used only as far as there is something to keep."""
    return int(machine.memory * PREFIX_CACHE_SHARE)


def _cgroup(name: str, num_values: int) -> list[int | None]:
    """The numbers in a file of this process' control group (version 2); None for "max" and where there is none."""
    try:
        values = (Path("/sys/fs/cgroup") / name).read_text().split()
    except OSError:
        return [None] * num_values
    return [int(value) if value.isdecimal() else None for value in values]


def _cpu_features() -> frozenset[str]:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return frozenset()
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()
