"""Where images may be fetched from."""

from collections.abc import Iterable
from dataclasses import dataclass

from octavo.core.hosts import DEFAULT_PORTS, host_and_port, is_address, normal_host


@dataclass(frozen=True, slots=True)
class HostRule:
    """An entry of the list of hosts: one, all below one where it begins with `*.`, or all where it is `*`.

    port: None for the usual ones of http and https.
    """

    host: str
    port: int | None

    @classmethod
    def parse(cls, text: str) -> "HostRule":
        """Of `HOST` or `HOST:PORT`. Raises ValueError."""
        try:
            host, port = host_and_port(text)
            return cls(_normal_pattern(host), port)
        except ValueError as error:
            raise ValueError(f"{text!r} {error}") from None

    @property
    def names_place(self) -> bool:
        """Whether it says where that is: an address, or this machine. Then it need not be a public one."""
        return self.host == "localhost" or is_address(self.host)

    def matches(self, scheme: str, host: str, port: int) -> bool:
        """host: a normal one."""
        if port != (DEFAULT_PORTS[scheme] if self.port is None else self.port):
            return False
        if self.host.startswith("*"):
            return host.endswith(self.host[1:])
        return host == self.host


def _normal_pattern(text: str) -> str:
    if text == "*":
        return text
    if not text.startswith("*."):
        return normal_host(text)
    parent = normal_host(text[2:])
    if is_address(parent):
        raise ValueError("has an address, and nothing is below one")
    return f"*.{parent}"


class ImageHosts:
    """The hosts from which images may be fetched."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        """Raises ValueError, which names the entry that is none."""
        self._rules = tuple(map(HostRule.parse, entries))

    def allow(self, scheme: str, host: str, port: int) -> bool:
        """Whether there is an entry for a normal host."""
        return any(rule.matches(scheme, host, port) for rule in self._rules)

    def allow_any_address(self, scheme: str, host: str, port: int) -> bool:
        """Whether an entry names the place itself, so that it may be reached although it is not public."""
        return any(rule.names_place and rule.matches(scheme, host, port) for rule in self._rules)
