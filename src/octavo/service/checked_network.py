"""Connections to addresses that have been looked at."""

from collections.abc import Iterable

import httpcore

from octavo.errors import ImageUrlRefused
from octavo.service.name_lookup import Resolve
from octavo.service.public_address import is_public


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
