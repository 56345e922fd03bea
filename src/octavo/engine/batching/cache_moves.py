"""What happens to keys and values between steps, as data: the scheduler decides, the core carries out, in order."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Truncate:
    """Forget what the slot holds from position `length` on."""

    slot: int
    length: int


@dataclass(frozen=True, slots=True)
class Copy:
    """Make the target hold the first `length` tokens of what the source holds, and nothing else."""

    source: int
    target: int
    length: int


@dataclass(frozen=True, slots=True)
class Move:
    """Make the target hold all that the source holds, and nothing else; the source holds nothing any more."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """Make each of two slots hold all that the other one holds."""

    a: int
    b: int


@dataclass(frozen=True, slots=True)
class Save:
    """Keep what the slot holds in the host's memory under the name `snapshot`."""

    slot: int
    snapshot: int


@dataclass(frozen=True, slots=True)
class Restore:
    """Make the slot hold the first `length` tokens of a snapshot, and nothing else; the snapshot stays."""

    snapshot: int
    slot: int
    length: int


@dataclass(frozen=True, slots=True)
class Discard:
    """Forget a snapshot."""

    snapshot: int


CacheMove = Truncate | Copy | Move | Exchange | Save | Restore | Discard
