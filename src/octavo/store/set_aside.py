"""Files with what could not be stored. Nothing bounds them, so that no row is lost: somebody has to look at them."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

BAD = ".bad"
"""Of their names; they are segments as well."""


@dataclass(frozen=True, slots=True)
class SetAside:
    """How many there are, and the bytes that they have together."""

    num_files: int = 0
    num_bytes: int = 0

    @classmethod
    def found(cls, root: Path) -> "SetAside":
        """In a spool, whoever left them. Raises OSError."""
        sizes = []
        for path in root.glob(f"*{BAD}"):
            with suppress(FileNotFoundError):  # somebody is taking them away
                sizes.append(path.stat().st_size)
        return cls(len(sizes), sum(sizes))
