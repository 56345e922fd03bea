"""The addresses of hosts."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address

from octavo.errors import Overloaded
from octavo.service.daemon_thread import in_daemon_thread
from octavo.service.public_address import Address

Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]
"""The addresses of a host. Raises OSError where it has none."""

MAX_LOOKUPS = 32
"""More than there are fetches at a time: a lookup cannot be stopped, and goes on when its fetch is given up."""


class NameLookup:
    """Asks the system's resolver, in threads of its own, for which the end of the process does not wait."""

    def __init__(self) -> None:
        self._lookups: set[asyncio.Task[Sequence[Address]]] = set()

    async def __call__(self, host: str, port: int) -> Sequence[Address]:
        """Raises OSError, and Overloaded where too many lookups have not ended yet."""
        if len(self._lookups) >= MAX_LOOKUPS:
            raise Overloaded("Too many names of hosts are being looked up; try again later.")
        lookup = asyncio.create_task(in_daemon_thread(lambda: _addresses(host, port)))
        self._lookups.add(lookup)
        lookup.add_done_callback(self._lookups.discard)
        return await asyncio.shield(lookup)


def _addresses(host: str, port: int) -> Sequence[Address]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(ip_address(place[0]) for *_, place in found))
