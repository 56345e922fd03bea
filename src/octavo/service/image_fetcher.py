"""Images from other servers."""

import asyncio
from collections.abc import Mapping
from ssl import SSLContext
from urllib.parse import urljoin

import httpcore

from octavo.core.http_url import HttpUrl
from octavo.errors import ImageUrlRefused
from octavo.prompting import image_too_large
from octavo.service.checked_network import CheckedNetwork
from octavo.service.fetch_turns import FetchTurns
from octavo.service.image_hosts import ImageHosts
from octavo.service.name_lookup import NameLookup, Resolve

MAX_REDIRECTS = 3

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HEADERS = (("Accept", "image/*"), ("Accept-Encoding", "identity"), ("User-Agent", "octavo"))


class ImageFetcher:
    """Gets files from hosts that the operator allows, and from public addresses only.

    Each connection is a new one: nothing that one server or user leaves behind is there for another. Proxies that the
    environment names are not used, for they would connect to addresses that are not checked.
    """

    def __init__(self, hosts: ImageHosts, *, max_size: int, max_time: float, resolve: Resolve | None = None) -> None:
        """max_size: bytes of a file.

        max_time: seconds from the request for a file to its last byte, and before that for which to wait for a turn.
        """
        self._hosts = hosts
        self._max_size = max_size
        self._max_time = max_time
        self._resolve = NameLookup() if resolve is None else resolve
        self._turns = FetchTurns(max_wait=max_time)
        self._tls: SSLContext | None = None

    async def fetch(self, url: str) -> bytes:
        """What is at a URL of http or https, by way of at most MAX_REDIRECTS redirects, to each of which the same rules
        apply. Raises ImageRefused, and Overloaded where its turn does not come."""
        place = self._allowed(url)
        async with self._turns.turn(place.host):
            return await self._in_time(place)

    async def _in_time(self, place: HttpUrl) -> bytes:
        try:
            async with asyncio.timeout(self._max_time):
                return await self._fetched(place)
        except (TimeoutError, httpcore.TimeoutException):
            raise _refused(f"The image was not there within {self._max_time:g} seconds.") from None
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
            raise _refused(f"The image cannot be fetched from {place.host}: the connection failed.") from error

    def _allowed(self, url: str, base: str = "") -> HttpUrl:
        """base: the URL to which the other may be relative."""
        try:
            place = HttpUrl.parse(urljoin(base, url))
        except ValueError as error:
            raise _refused(f"The URL of an image {error}.") from None
        if not self._hosts.allow(place.scheme, place.host, place.port):
            raise _refused(f"Images are not fetched from {place.authority} by this server; send a data: URL.")
        return place

    async def _fetched(self, place: HttpUrl) -> bytes:
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._asked(place)
            if isinstance(answer, bytes):
                return answer
            place = self._allowed(answer, base=str(place))
        raise _refused(f"The image is behind more than {MAX_REDIRECTS} redirects.")

    async def _asked(self, place: HttpUrl) -> bytes | str:
        """The file, or the URL to which the server redirects, which may be relative."""
        any_address = self._hosts.allow_any_address(place.scheme, place.host, place.port)
        network = CheckedNetwork(self._resolve, takes_any_address=any_address)
        tls = await self._trust() if place.scheme == "https" else None
        url = httpcore.URL(scheme=place.scheme, host=place.host, port=place.port, target=place.target)
        headers = [("Host", place.authority), *_HEADERS]
        async with (
            httpcore.AsyncConnectionPool(ssl_context=tls, network_backend=network) as pool,
            pool.stream("GET", url, headers=headers, extensions={"timeout": {"connect": self._max_time}}) as response,
        ):
            head = {name.lower(): value for name, value in response.headers}
            if response.status in _REDIRECTS and b"location" in head:
                return head[b"location"].decode(errors="replace")
            if response.status != 200:
                message = f"The image cannot be fetched: {place.host} answered with status {response.status}."
                raise _refused(message)
            return await self._read(response, head)

    async def _read(self, response: httpcore.Response, head: Mapping[bytes, bytes]) -> bytes:
        if head.get(b"content-encoding", b"identity").lower() != b"identity":
            raise _refused("The image is sent compressed, although that was not asked for.")
        if int(head.get(b"content-length", b"0")) > self._max_size:
            raise image_too_large(self._max_size)
        data = bytearray()
        async for part in response.aiter_stream():
            data += part
            if len(data) > self._max_size:
                raise image_too_large(self._max_size)
        return bytes(data)

    async def _trust(self) -> SSLContext:
        """Read once and in a thread: it takes as long as a small fetch, and most servers never need one."""
        if self._tls is None:
            self._tls = await asyncio.to_thread(httpcore.default_ssl_context)
        return self._tls


def _refused(message: str) -> ImageUrlRefused:
    return ImageUrlRefused(message, param="messages")
