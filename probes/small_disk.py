"""A real file system that is soon full."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from support.processes import SECONDS


@contextmanager
def small_disk(size: int = 2**20) -> Iterator[Path]:
    """The folder at which one of so many bytes is mounted, for the block. Raises OSError where it cannot be."""
    with TemporaryDirectory(prefix="octavo-probe-") as folder:
        _run("mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "octavo-probe", folder)
        try:
            yield Path(folder)
        finally:
            _run("umount", "--lazy", folder)  # also where something still has a file open in it


def no_small_disk() -> str:
    try:
        with small_disk():
            return ""
    except OSError as error:
        return f"a small file system cannot be mounted here, which needs root: {error}"


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise OSError((done.stderr or "it failed").splitlines()[0])
