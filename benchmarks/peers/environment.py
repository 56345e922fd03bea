"""Virtual environments of peers that come as Python packages."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.base import PEERS, PeerUnavailable

VERSION_OF = "import importlib.metadata, sys; print(*map(importlib.metadata.version, sys.argv[1:]))"


@dataclass(frozen=True, slots=True)
class Environment:
    """unwanted: what is taken out again after the requirements were installed."""

    name: str
    requirements: tuple[str, ...]
    unwanted: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return PEERS / self.name

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def install(self) -> None:
        """Once for these very requirements. Raises PeerUnavailable."""
        marker, key = self.folder / "installed-for", repr((sys.version, self.requirements, self.unwanted))
        if marker.exists() and marker.read_text() == key:
            return
        print(f"Installing {self.name} (once) …", file=sys.stderr)
        _run(sys.executable, "-m", "venv", str(self.folder))
        pip = (str(self.python), "-m", "pip", "--disable-pip-version-check", "--quiet")
        _run(*pip, "install", *self.requirements)
        if self.unwanted:
            _run(*pip, "uninstall", "--yes", *self.unwanted)
        marker.write_text(key)

    def version(self, package: str) -> str:
        return _run(str(self.python), "-c", VERSION_OF, package).strip()


def _run(*command: str) -> str:
    """What it prints. Raises PeerUnavailable with the line that says what went wrong."""
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        lines = [line for line in error.stderr.splitlines() if line.strip()] or [f"status {error.returncode}"]
        reason = next((line for line in lines if line.startswith("ERROR")), lines[-1])
        raise PeerUnavailable(reason) from error
    return done.stdout
