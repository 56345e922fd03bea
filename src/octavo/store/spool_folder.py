"""A server's part of the spool."""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from octavo.store.durable_files import FILE_MODE, make_folder, sync_folder

SUFFIX = ".rows"
_LOCK = "lock"
"""A file, as folders cannot be locked everywhere."""


class SpoolFolder:
    """A folder of segments, locked as long as the process lives that moves them to the database.

    Its name begins with the digest of the database that they are for.
    """

    def __init__(self, path: Path, lock: int) -> None:
        """Use `make` or `adopt`."""
        self.path = path
        self._lock = lock

    @classmethod
    def make(cls, root: Path, digest: str) -> "SpoolFolder":
        """A new one. Raises OSError."""
        make_folder(root)
        while True:
            path = root / f"{digest}-{os.getpid()}-{token_hex(4)}"
            make_folder(path)
            # Whoever looks for folders that were left may have been faster, and taken it away.
            if (folder := cls.adopt(path)) is not None:
                return folder

    @classmethod
    def adopt(cls, path: Path) -> "SpoolFolder | None":
        """None where another process has it, or has done away with it. Raises OSError."""
        try:
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT, FILE_MODE)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_there = os.path.samestat(os.fstat(lock), (path / _LOCK).stat())
        except (BlockingIOError, FileNotFoundError):
            is_there = False
        except OSError:
            os.close(lock)
            raise
        if is_there:
            return cls(path, lock)
        os.close(lock)
        return None

    @property
    def segments(self) -> Sequence[Path]:
        """In the order in which they were made. Raises OSError."""
        return sorted(self.path.glob(f"*{SUFFIX}"))

    def new_segment(self, number: int) -> Path:
        return self.path / f"{number:08}{SUFFIX}"

    def leave(self) -> None:
        """Unlock it, and remove it where nothing is left in it."""
        with suppress(OSError):
            if not self.segments:
                (self.path / _LOCK).unlink()
                self.path.rmdir()
                sync_folder(self.path.parent)
        os.close(self._lock)


def folders_in(root: Path, digest: str) -> Iterator[Path]:
    """All for that database, whoever has them. Raises OSError."""
    if root.exists():
        yield from sorted(path for path in root.glob(f"{digest}-*") if path.is_dir())


def folders_for_others(root: Path, digest: str) -> Iterator[Path]:
    """Those with rows for another database. Raises OSError."""
    yield from (
        path
        for path in sorted({each.parent for each in root.glob(f"*/*{SUFFIX}")})
        if not path.name.startswith(f"{digest}-")
    )
