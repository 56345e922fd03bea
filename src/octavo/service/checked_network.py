"""Connections to addresses that have been looked at."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import ip_address

import httpcore

from octavo.errors import ImageUrlRefused
from octavo.service.public_address import Address, is_public

Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]
"""The addresses of a host. Raises OSError where it has none."""


async def resolve(host: str, port: int) -> Sequence[Address]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(ip_address(place[0]) for *_, place in found))


class CheckedNetwork(httpcore.AsyncNetworkBackend):
    """Asks for a host's addresses once and connects to one of these, so that the one connected to is one checked.

    takes_any_address: whether they need not be public ones; else all of them must be.
    """

    def __init__(self, resolve: Resolve, *, takes_any_address: bool) -> None:
        self._network = httpcore.AnyIOBackend()
        self._resolve = resolve
        self._takes_any_address = takes_any_address

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """timeout: seconds for all addresses together. Raises ImageUrlRefused, OSError and httpcore.ConnectError."""
        addresses = await self._resolve(host, port)
        if not self._takes_any_address and not all(map(is_public, addresses)):
            message = f"Images are not fetched from {host}: its address is not a public one."
            raise ImageUrlRefused(message, param="messages")
        share = None if timeout is None else timeout / max(1, len(addresses))
        for address in addresses:
            try:
                return await self._network.connect_tcp(str(address), port, share, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        raise httpcore.ConnectError(f"no address of {host} answers")

    async def sleep(self, seconds: float) -> None:
        await self._network.sleep(seconds)
