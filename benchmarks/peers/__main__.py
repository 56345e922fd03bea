"""Build llama-server, or run it.

python -m benchmarks.peers build
"""

from __future__ import annotations

import argparse
import asyncio
import shlex
import subprocess
import sys
from pathlib import Path

from benchmarks.peers import PEERS, build_llama_server, llama_server, variants
from benchmarks.processes import ServerCommand, ServerFailed, run_until_stopped, running


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
    serve.add_argument("--variant", choices=list(variants()), default="defaults")
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
        flags = (*variants()[options.variant], *options.flags)
        command = llama_server(program, options.model, options.variant, options.slots, options.ctx, flags)
        run_until_stopped(_serve(command, PEERS / "logs" / "llama-server.log"))
    except (LookupError, ServerFailed, subprocess.CalledProcessError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
