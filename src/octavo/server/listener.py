"""The socket that a server listens on."""

import errno
import socket
from dataclasses import dataclass
from ipaddress import ip_address

from octavo.errors import ConfigError

BACKLOG = 2048


@dataclass(frozen=True, slots=True)
class Listener:
    """An open socket; connections wait in it until a server accepts them."""

    sock: socket.socket
    host: str

    @property
    def port(self) -> int:
        return int(self.sock.getsockname()[1])

    @property
    def is_loopback(self) -> bool:
        return ip_address(self.sock.getsockname()[0]).is_loopback

    @property
    def url(self) -> str:
        """For a program on this machine."""
        address = ip_address(self.sock.getsockname()[0])
        host = ("127.0.0.1" if address.version == 4 else "::1") if address.is_unspecified else self.host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


def listen(host: str, port: int) -> Listener:
    """Open the socket now, so that a port in use is found out before anything is loaded. Raises ConfigError."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ConfigError(f"--host {host!r}: no such address ({error.strerror}).") from error
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(address)
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise ConfigError(_explain(error, host, port)) from error
    return Listener(sock, host)


def _explain(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} of {host} is in use by another program; choose another one with --port."
    return f"Cannot listen on port {port} of {host}: {error.strerror}."
