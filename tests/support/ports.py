"""Ports of this machine."""

import socket


def closed_port() -> int:
    """One on which nobody listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
