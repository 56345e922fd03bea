"""llama.cpp's own server, built from the sources that Octavo itself runs on."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from benchmarks.contenders import Contender, Room, ServerContender
from benchmarks.machine import describe_llama_server, processor
from benchmarks.peers.base import PEERS, PeerUnavailable
from benchmarks.processes import ServerCommand
from benchmarks.workloads import Workload

BENCHMARKS = Path(__file__).parent.parent
BUILD_SCRIPT = BENCHMARKS / "build_llama_server.sh"
CURE = BENCHMARKS.parent / "native" / "amx_tile_config_cure.h"
DEFAULTS, BEST, LOOKUP = "defaults", "best", "lookup"
LOOKUP_FLAGS = ("--spec-type", "ngram-simple", "--spec-draft-n-max", "64")


def best_flags() -> tuple[str, ...]:
    """The cache types that were found fastest on such a processor; BF16 values need its BF16 dot products."""
    _, features = processor()
    values = ("-ctv", "bf16") if "avx512_bf16" in features else ()
    return ("-ctk", "q8_0", *values, "-fa", "on")


def variants() -> dict[str, tuple[str, ...]]:
    """The flags of each variant, by name; `lookup` drafts from the text that is there."""
    return {DEFAULTS: (), BEST: best_flags(), LOOKUP: (*best_flags(), *LOOKUP_FLAGS)}


@dataclass(frozen=True, slots=True)
class LlamaServer:
    """flags: of each variant that is to be measured, by its name."""

    flags: dict[str, tuple[str, ...]]
    name: str = "llama-server"

    def install(self) -> str:
        try:
            return describe_llama_server(build_llama_server())
        except (LookupError, OSError, subprocess.CalledProcessError) as error:
            raise PeerUnavailable(f"it cannot be built: {error}") from error

    def contenders(self, model: Path, workload: Workload) -> Sequence[Contender]:
        if workload.is_raw:
            return ()
        return [
            llama_server_contender(build_llama_server(), model, variant, flags)
            for variant, flags in self.flags.items()
            if (variant == LOOKUP) == workload.is_repetitive
        ]


def llama_server_contender(program: Path, model: Path, variant: str, flags: Sequence[str]) -> ServerContender:
    """With as many slots as there are sequences."""

    def command(room: Room) -> ServerCommand:
        return llama_server(program, model, variant, room.num_slots, room.context_length, flags)

    return ServerContender(f"llama-server ({variant})", command)


def llama_server(
    program: Path, model: Path, variant: str, num_slots: int, context_per_slot: int, flags: Sequence[str]
) -> ServerCommand:
    """llama-server with num_slots slots; its own defaults for all that flags do not name."""
    slots = ("-np", str(num_slots), "-c", str(num_slots * context_per_slot))
    # Without an alias the model's id is its whole path, which a report has no use for.
    names = ("-m", str(model), "--alias", model.stem)
    arguments = (str(program), *names, "--host", "127.0.0.1", "--port", "{port}", *slots, *flags)
    return ServerCommand(f"llama-server ({variant})", arguments, ready_path="/health")


def build_llama_server() -> Path:
    """The llama-server program, built unless it is there for this very compiler, processor and cure."""
    version = llama_cpp_python_version()
    folder = PEERS / f"llama-server-{version}"
    program, marker = folder / "llama-server", folder / "built-for"
    key = _build_key(version)
    if not program.exists() or not marker.exists() or marker.read_text() != key:
        print(f"Building llama-server {version} (once; about 10 minutes on two cores) …", file=sys.stderr)
        subprocess.run(
            [BUILD_SCRIPT, version, folder], check=True, env={**os.environ, "PYTHON": sys.executable}, stdout=sys.stderr
        )
        marker.write_text(key)
    return program


def llama_cpp_python_version() -> str:
    """The version that Octavo pins, so that both sides run the same llama.cpp. Raises LookupError."""
    try:
        needs = requires("octavo") or []
    except PackageNotFoundError as error:
        raise LookupError("octavo is not installed in this environment") from error
    for need in needs:
        if pin := re.match(r"llama[-_]cpp[-_]python==([\w.]+)", need):
            return pin[1]
    raise LookupError("octavo pins no version of llama-cpp-python")


def _build_key(version: str) -> str:
    """A digest of all that the build's result depends on."""
    compiler = subprocess.run([os.environ.get("CXX", "c++"), "--version"], check=True, capture_output=True).stdout
    parts = [version.encode(), os.environ.get("CMAKE_ARGS", "").encode(), compiler]
    parts += [CURE.read_bytes(), BUILD_SCRIPT.read_bytes(), repr(processor()).encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()
