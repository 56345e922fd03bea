"""A file of the spool: rows in the order in which they came."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from octavo.store.durable_files import make_file, write
from octavo.store.record import read_records


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment to which nothing is added any more. size: the bytes of it that count."""

    path: Path
    size: int
    num_rows: int

    @classmethod
    def found(cls, path: Path) -> "Segment":
        """One that another process left. Raises OSError."""
        content = path.read_bytes()
        return cls(path, len(content), sum(isinstance(record, bytes) for record in read_records(content)))

    def read(self) -> bytes:
        """Nothing, where somebody took it away. Raises OSError."""
        try:
            with self.path.open("rb") as file:
                return file.read(self.size)
        except FileNotFoundError:
            return b""

    def remove(self) -> None:
        """Raises OSError."""
        self.path.unlink(missing_ok=True)


class SegmentWriter:
    """The segment to which records are added. For one thread."""

    def __init__(self, path: Path) -> None:
        """Raises OSError, FileExistsError where there is one."""
        self._file = make_file(path)
        self._path = path
        self.size = 0
        self._num_rows = 0

    def append(self, records: Sequence[bytes]) -> None:
        """Return when they are on the disk. Raises OSError; then none counts, and the segment is to be sealed."""
        try:
            write(self._file, records)
        except OSError:
            # A next process would move what is there of them, which does no harm, but they would be in the way.
            with suppress(OSError):
                os.ftruncate(self._file, self.size)
            raise
        self.size += sum(map(len, records))
        self._num_rows += len(records)

    def seal(self) -> Segment:
        with suppress(OSError):  # all that counts is on the disk
            os.close(self._file)
        return Segment(self._path, self.size, self._num_rows)
