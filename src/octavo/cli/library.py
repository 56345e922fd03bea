"""What the llama.cpp library says of itself, asked in a process of its own: a broken library takes only that down."""

import subprocess
from dataclasses import dataclass

from octavo.engine.own_module import own_module

SECONDS = 60
BROKEN_PROCESS = "its process ended with {code}: {reason}"


@dataclass(frozen=True, slots=True)
class Library:
    """version and features as llama.cpp gives them. fault: why there is none, empty when all is well."""

    version: str = ""
    features: str = ""
    fault: str = ""

    @property
    def uses_amx(self) -> bool:
        return "AMX" in self.features


def ask_library() -> Library:
    """Load the library in a child process and ask it."""
    command = own_module("octavo.cli.library")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Library(fault=f"it did not answer in {SECONDS} s")
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return Library(fault=BROKEN_PROCESS.format(code=done.returncode, reason=reason))
    version, _, features = done.stdout.strip().partition("\n")
    return Library(version, features.strip())


def _answer() -> None:
    from octavo.engine.runners.llama_cpp import binding

    binding.initialize()
    print(binding.version())
    print(binding.system_info())


if __name__ == "__main__":
    _answer()
