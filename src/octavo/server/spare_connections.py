"""Connections beyond those that are served."""

from typing import Protocol

SPARE_CONNECTIONS = 100
"""So many, so that liveness probes are answered and the others told why not."""
SPARE_TIME = 1.0
"""Seconds in which a request must come on one of them."""


class Spare(Protocol):
    def make_room(self) -> None:
        """End at once."""
        ...


class SpareConnections:
    """The oldest make room for new ones, so that however many there are a probe finds one."""

    def __init__(self) -> None:
        self._connections: dict[Spare, None] = {}

    def __len__(self) -> int:
        return len(self._connections)

    def __contains__(self, connection: object) -> bool:
        return connection in self._connections

    def add(self, connection: Spare) -> None:
        if len(self) >= SPARE_CONNECTIONS:
            oldest = next(iter(self._connections))
            self.discard(oldest)
            oldest.make_room()
        self._connections[connection] = None

    def discard(self, connection: Spare) -> None:
        self._connections.pop(connection, None)
