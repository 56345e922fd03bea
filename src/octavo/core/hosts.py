"""Hosts as URLs and headers name them, read so that no two programs could read them in different ways."""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address

import idna

DEFAULT_PORTS = {"http": 80, "https": 443}
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")
_HOST_AND_PORT = re.compile(r"(?P<host>\[[^\]]*\]|[^:]*)(:(?P<port>[0-9]{1,5}))?")


def host_and_port(text: str) -> tuple[str, int | None]:
    """Of `HOST` or `HOST:PORT`, the host as it is written. Raises ValueError."""
    match = _HOST_AND_PORT.fullmatch(text)
    if match is None:
        raise ValueError("is not HOST or HOST:PORT")
    port = None if match["port"] is None else int(match["port"])
    if port is not None and not 1 <= port <= 65535:
        raise ValueError("has a port that is not 1 to 65535")
    return match["host"], port


def normal_host(text: str) -> str:
    """A host's name in small ASCII letters, or its address as the standard writes it, without brackets.

    Raises ValueError for what is neither, and for addresses in other forms, such as 0x7f.1: programs disagree on them.
    """
    if text.startswith("["):
        return _ipv6(text)
    name = _ascii(text).lower().removesuffix(".")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _ipv4(name)
    if len(name) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise ValueError("is not the name of a host")
    return name


def _ascii(text: str) -> str:
    if text.isascii():
        return text
    try:
        return idna.encode(text, uts46=True).decode()
    except idna.IDNAError:
        raise ValueError("is not the name of a host") from None


def _ipv4(text: str) -> str:
    try:
        return str(IPv4Address(text))
    except AddressValueError:
        raise ValueError("is not an IPv4 address of four decimal numbers") from None


def _ipv6(text: str) -> str:
    try:
        address = IPv6Address(text.removeprefix("[").removesuffix("]"))
    except AddressValueError:
        raise ValueError("is not an IPv6 address") from None
    if address.scope_id is not None or not text.endswith("]"):
        raise ValueError("is not an IPv6 address")
    return str(address)


def is_address(host: str) -> bool:
    """Whether a normal host is an address rather than a name."""
    return ":" in host or host.rpartition(".")[2].isdecimal()
