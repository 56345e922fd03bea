"""What the runner knows of a peer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.contenders import Contender
from benchmarks.workloads import Workload

PEERS = Path(__file__).parent.parent / ".peers"
"""Where peers are built and installed, and where logs go; git ignores it."""


class PeerUnavailable(Exception):
    """A peer cannot be had here; the message says why in one line."""


class Peer(Protocol):
    """Something to set Octavo against."""

    @property
    def name(self) -> str: ...

    def install(self) -> str:
        """Build or install what is missing; returns the versions in words. Raises PeerUnavailable."""

    def contenders(self, model: Path, workload: Workload) -> Sequence[Contender]:
        """In the forms that this workload is for; none where it is for none of them."""


@dataclass(frozen=True, slots=True)
class MissingPeer:
    """A peer that a user would pick, and that no machine gets without a hand."""

    name: str
    reason: str

    def install(self) -> str:
        raise PeerUnavailable(self.reason)

    def contenders(self, model: Path, workload: Workload) -> Sequence[Contender]:
        return ()
