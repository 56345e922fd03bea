"""What this machine has, and what is chosen for it: cache types, threads, context and slots.

The measurements behind the choices are in benchmarks/README.md; each choice comes with its reason, for
`octavo doctor` and the log.
"""

import os
from dataclasses import dataclass
from pathlib import Path

GIB = 2**30
DEFAULT_SLOTS = 32
DEFAULT_CONTEXT = 4096
CACHE_SHARE = 0.25
"""Of the machine's memory, for the KV cache."""
BYTES_PER_NUMBER = {"f32": 4.0, "f16": 2.0, "bf16": 2.0, "q8_0": 34 / 32, "q4_0": 18 / 32}


@dataclass(frozen=True, slots=True)
class Machine:
    """features: instruction sets by the names that the kernel gives them. memory: bytes."""

    num_cores: int
    memory: int
    features: frozenset[str]

    @classmethod
    def detect(cls) -> "Machine":
        num_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return cls(num_cores, memory, _cpu_features())

    @property
    def summary(self) -> str:
        known = ("avx2", "f16c", "avx512f", "avx512_bf16", "avx512_vnni", "amx_tile", "amx_int8", "neon", "asimd")
        has = " ".join(name for name in known if name in self.features)
        return f"{self.num_cores} cores, {self.memory / GIB:.1f} GiB, {has or 'no known vector extensions'}"


@dataclass(frozen=True, slots=True)
class CacheTypes:
    """ggml type names of the KV cache, and why these."""

    keys: str
    values: str
    reason: str

    def bytes_per_token(self, cache_width: int) -> float:
        """For a model whose cache holds `cache_width` numbers per token."""
        return cache_width / 2 * (BYTES_PER_NUMBER[self.keys] + BYTES_PER_NUMBER[self.values])


def choose_cache_types(machine: Machine) -> CacheTypes:
    """By the dot products that the processor has: attention over the cache is up to half of a step."""
    if "avx512_bf16" in machine.features:
        return CacheTypes("q8_0", "bf16", "the processor has AVX-512 BF16 dot products")
    return CacheTypes("f16", "f16", "llama.cpp's default; no BF16 dot products here")


def choose_threads(machine: Machine) -> int:
    return machine.num_cores


def choose_context_length(trained: int) -> int:
    return min(trained, DEFAULT_CONTEXT)


def choose_slots(machine: Machine, *, bytes_per_slot: float) -> int:
    """As many as the default, unless their caches would take more than their share of the memory."""
    return max(1, min(DEFAULT_SLOTS, int(machine.memory * CACHE_SHARE / bytes_per_slot)))


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
