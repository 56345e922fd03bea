"""What a result depends on besides the servers: processor, system, versions, and who else was using them."""

from __future__ import annotations

import asyncio
import os
import platform
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import psutil

INSTRUCTION_SETS = (
    *("avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile", "amx_int8", "amx_bf16"),
    *("asimddp", "i8mm", "bf16", "sve"),
)
QUIET_PERCENT = 10.0
QUIET_WAIT_SECONDS = 30


def processor() -> tuple[str, list[str]]:
    """The processor's name and all its feature flags (none where the system does not list them)."""
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.exists():
        return platform.processor() or platform.machine(), []
    found: list[tuple[str, str]] = re.findall(
        r"^(model name|flags|Features)\s*:\s*(.*)$", cpuinfo.read_text(), re.MULTILINE
    )
    lines = dict(found)
    flags = lines.get("flags", lines.get("Features", ""))
    return lines.get("model name", platform.machine()), flags.split()


def describe_machine() -> dict[str, str]:
    """The machine in words; nothing in it names a person, a host or a folder."""
    name, flags = processor()
    return {
        "processor": name,
        "instruction sets": " ".join(flag for flag in INSTRUCTION_SETS if flag in flags) or "unknown",
        "processors": f"{psutil.cpu_count()} ({psutil.cpu_count(logical=False)} cores)",
        "memory": f"{psutil.virtual_memory().total / 2**30:.1f} GiB",
        "system": f"{platform.system()} {platform.release()}",
    }


def describe_llama_server(program: Path) -> str:
    lines = _output(str(program), "--version").splitlines()
    return ", ".join(line.strip() for line in lines if line.strip())


def describe_versions() -> dict[str, str]:
    """Versions of all that takes part on Octavo's side."""
    compiler = _output(os.environ.get("CXX", "c++"), "--version").partition("\n")[0]
    return {
        "octavo": f"{version('octavo')} ({_output('git', 'describe', '--always', '--dirty') or 'no git'})",
        "llama-cpp-python": version("llama-cpp-python"),
        "compiler": compiler,
        "Python": sys.version.partition(" ")[0],
    }


def _output(*command: str) -> str:
    """Both streams of a short command, or nothing where it is missing or fails."""
    try:
        done = subprocess.run(
            command, cwd=Path(__file__).parent, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


async def background_load() -> float:
    """Percent of all processors that others use, after waiting some time for them to finish."""
    percent = 100.0
    for _ in range(QUIET_WAIT_SECONDS):
        psutil.cpu_percent()
        await asyncio.sleep(1)
        percent = psutil.cpu_percent()
        if percent < QUIET_PERCENT:
            break
    return percent
