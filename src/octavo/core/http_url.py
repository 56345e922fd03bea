"""URLs of http and https, read so that no two programs could read them in different ways."""

import re
from dataclasses import dataclass
from string import punctuation
from urllib.parse import quote

from octavo.core.hosts import DEFAULT_PORTS, host_and_port, normal_host

MAX_URL = 8 * 2**10

_AMBIGUOUS = re.compile(r"[\x00-\x20\x7f\\]")
"""What some programs leave out of a URL and others do not, and the backslash, which some take for a slash."""

_URL = re.compile(
    r"(?P<scheme>https?)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?P<query>\?[^#]*)?(#.*)?", re.IGNORECASE
)
"""As in appendix B of RFC 3986."""


@dataclass(frozen=True, slots=True)
class HttpUrl:
    """A URL without its fragment. scheme: http or https. host: see normal_host. target: path and query, in ASCII."""

    scheme: str
    host: str
    port: int
    target: str

    @classmethod
    def parse(cls, text: str) -> "HttpUrl":
        """Raises ValueError, with what is wrong with the URL."""
        if len(text) > MAX_URL:
            raise ValueError(f"is longer than {MAX_URL} characters")
        if _AMBIGUOUS.search(text):
            raise ValueError("has a space, a backslash or a control character in it")
        match = _URL.fullmatch(text)
        if match is None:
            raise ValueError("must begin with data:, https:// or http://")
        if "@" in match["authority"]:
            raise ValueError("has the name of a user in it")
        scheme = match["scheme"].lower()
        host, port = host_and_port(match["authority"])
        target = (match["path"] or "/") + (match["query"] or "")
        return cls(scheme, normal_host(host), port or DEFAULT_PORTS[scheme], _quoted(target))

    @property
    def authority(self) -> str:
        """Host and port as in a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def _quoted(target: str) -> str:
    try:
        return quote(target, safe=punctuation)
    except UnicodeEncodeError:  # JSON can write such strings
        raise ValueError("has half of a surrogate pair in it") from None
