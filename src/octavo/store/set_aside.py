"""Files with what could not be stored. Nothing bounds them, so that no row is lost: somebody has to look at them."""

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
        sizes = [path.stat().st_size for path in root.glob(f"*{BAD}")]
        return cls(len(sizes), sum(sizes))
