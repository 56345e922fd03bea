"""Servers to compare Octavo with, built from the sources that Octavo itself runs on.

python -m benchmarks.peers build
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from benchmarks.machine import processor
from benchmarks.processes import ServerCommand, ServerFailed, run_until_stopped, running

HERE = Path(__file__).parent
PEERS = HERE / ".peers"
BUILD_SCRIPT = HERE / "build_llama_server.sh"
CURE = HERE.parent / "native" / "amx_tile_config_cure.h"

LLAMA_SERVER_VARIANTS: dict[str, tuple[str, ...]] = {
    "defaults": (),
    "best": ("-ctk", "q8_0", "-ctv", "bf16", "-fa", "on"),
}


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


def _build_key(version: str) -> str:
    """A digest of all that the build's result depends on."""
    compiler = subprocess.run([os.environ.get("CXX", "c++"), "--version"], check=True, capture_output=True).stdout
    parts = [version.encode(), os.environ.get("CMAKE_ARGS", "").encode(), compiler]
    parts += [CURE.read_bytes(), BUILD_SCRIPT.read_bytes(), repr(processor()).encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def llama_server(
    program: Path, model: Path, variant: str, num_slots: int, context_per_slot: int, flags: Sequence[str]
) -> ServerCommand:
    """llama-server with num_slots slots; its own defaults for all that flags do not name."""
    slots = ("-np", str(num_slots), "-c", str(num_slots * context_per_slot))
    # Without an alias the model's id is its whole path, which a report has no use for.
    names = ("-m", str(model), "--alias", model.stem)
    arguments = (str(program), *names, "--host", "127.0.0.1", "--port", "{port}", *slots, *flags)
    return ServerCommand(f"llama-server ({variant})", arguments, ready_path="/health")


async def _serve(command: ServerCommand, log_path: Path) -> None:
    async with running(command, log_path) as url:
        print(f"{command.name} is ready at {url}; its log is {log_path}. Ctrl-C stops it.", flush=True)
        await asyncio.Event().wait()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build llama-server and print the program's path")
    serve = commands.add_parser("serve", help="run llama-server until Ctrl-C")
    serve.add_argument("model", type=Path, help="a .gguf file")
    serve.add_argument("--variant", choices=list(LLAMA_SERVER_VARIANTS), default="defaults")
    serve.add_argument("--slots", type=int, default=8)
    serve.add_argument("--ctx", type=int, default=512, help="tokens per slot")
    serve.add_argument("--flags", type=shlex.split, default=[], help="more flags, as one argument")
    return parser


def main() -> None:
    """Build llama-server, and run it if asked to."""
    options = _parser().parse_args()
    try:
        program = build_llama_server()
        if options.command == "build":
            print(program)
            return
        flags = (*LLAMA_SERVER_VARIANTS[options.variant], *options.flags)
        command = llama_server(program, options.model, options.variant, options.slots, options.ctx, flags)
        run_until_stopped(_serve(command, PEERS / "logs" / "llama-server.log"))
    except (LookupError, ServerFailed, subprocess.CalledProcessError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
