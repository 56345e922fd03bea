"""Files and folders that are still there after a power cut, for their owner alone."""

import os
from collections.abc import Sequence
from pathlib import Path

FILE_MODE = 0o600
_FOLDER_MODE = 0o700


def make_folder(path: Path) -> None:
    """With those above it that are missing. Raises OSError, FileExistsError where it is a file."""
    if not path.parent.exists():
        make_folder(path.parent)
    try:
        path.mkdir(_FOLDER_MODE)
    except FileExistsError:
        if not path.is_dir():
            raise
    else:
        sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make durable which files it has. Raises OSError."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def make_file(path: Path) -> int:
    """A new file, open for appending. Raises OSError, FileExistsError where there is one."""
    return _open(path, os.O_EXCL)


def append_durably(path: Path, content: bytes) -> None:
    """To a file that may be new. Raises OSError, and then a part of it may have been written."""
    file = _open(path, 0)
    try:
        write(file, [content])
    finally:
        os.close(file)


def write(file: int, parts: Sequence[bytes]) -> None:
    """Return when they are on the disk. Raises OSError, and then some of it may have been written."""
    for part in parts:  # joined, they would be in memory twice
        rest = memoryview(part)
        while rest:
            rest = rest[os.write(file, rest) :]
    os.fsync(file)


def _open(path: Path, flag: int) -> int:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | flag, FILE_MODE)
    try:
        sync_folder(path.parent)
    except OSError:
        os.close(file)
        raise
    return file
