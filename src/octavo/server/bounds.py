"""How much of the server a connection may take, and for how long."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """max_headers: bytes of a request line and its headers. max_receive_time: seconds in which a whole request comes.
    max_unread: bytes that wait for a client to read them, before the answer waits too. max_unread_time: seconds in
    which the client must then read as much. max_connections: at a time."""

    max_headers: int = 64 * 2**10
    max_receive_time: float = 30.0
    max_unread: int = 64 * 2**10
    max_unread_time: float = 30.0
    max_connections: int = 1000
