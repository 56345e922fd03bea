"""By which names browsers may call the server, and whose pages may let them."""

import re
from collections.abc import Iterable

from octavo.core.hosts import DEFAULT_PORTS, host_and_port, is_address, normal_host
from octavo.core.http_url import HttpUrl

ANY = "*"
_ORIGIN = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*)://(?P<authority>[^\s/?#@\\]+)")
"""Scheme and authority, and nothing behind. Not `null`: any page can come to have that."""


def called_host(text: str) -> str:
    """The normal host of a Host header, whose port may be empty. Raises ValueError."""
    return normal_host(host_and_port(f"{text}80" if text.endswith(":") else text)[0])


def normal_origin(text: str) -> str:
    """An origin as browsers write it, such as https://example.com or http://[::1]:3000. Raises ValueError."""
    match = _ORIGIN.fullmatch(text)
    if match is None:
        raise ValueError("is not an origin such as https://example.com")
    scheme = match["scheme"].lower()
    if scheme not in DEFAULT_PORTS:  # the page came with a program or an extension rather than from a server
        return f"{scheme}://{match['authority']}"
    url = HttpUrl.parse(text)
    return f"{url.scheme}://{url.authority}"


class AllowedHosts:
    """Addresses, localhost and what is below it, and the names that are listed.

    A page that was loaded from a name may ask whatever answers at that name, and whoever owns the name can let it point
    to this machine in the meantime. So a name must be known to be this server's, while an address cannot be pointed
    anywhere.
    """

    def __init__(self, entries: Iterable[str] = ()) -> None:
        """entries: names, or `*` for any. Raises ValueError, which names the entry that is none."""
        self._names = frozenset(map(_listed_name, entries))

    def allow(self, host: str) -> bool:
        """host: a normal one."""
        return (
            is_address(host)
            or host == "localhost"
            or host.endswith(".localhost")
            or host in self._names
            or ANY in self._names
        )


class AllowedOrigins:
    """Those whose pages may call the server, beside the server's own."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        """entries: origins, or `*` for any. Raises ValueError, which names the entry that is none."""
        self._origins = frozenset(map(_listed_origin, entries))

    def allow(self, origin: str) -> bool:
        """origin: as a browser sent it; `null` is that of pages which come from nowhere, and many are that."""
        if ANY in self._origins:
            return True
        try:
            return normal_origin(origin) in self._origins
        except ValueError:
            return False


def _listed_name(entry: str) -> str:
    if entry == ANY:
        return ANY
    try:
        host, port = host_and_port(entry)
        if port is not None:
            raise ValueError("has a port; a name is allowed at any")
        return normal_host(host)
    except ValueError as error:
        raise ValueError(f"{entry!r} {error}") from None


def _listed_origin(entry: str) -> str:
    if entry == ANY:
        return ANY
    try:
        return normal_origin(entry)
    except ValueError as error:
        raise ValueError(f"{entry!r} {error}") from None
