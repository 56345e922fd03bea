"""Images from other servers."""

import asyncio
from collections.abc import Mapping
from functools import cached_property
from ssl import SSLContext
from urllib.parse import urljoin

import httpcore

from octavo.errors import ImageUrlRefused
from octavo.prompting import image_too_large
from octavo.service.checked_network import CheckedNetwork, Resolve, resolve
from octavo.service.http_url import HttpUrl
from octavo.service.image_hosts import ImageHosts

MAX_REDIRECTS = 3
MAX_FETCHES = 16
"""At a time, for all requests together."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HEADERS = (("Accept", "image/*"), ("Accept-Encoding", "identity"), ("User-Agent", "octavo"))


class ImageFetcher:
    """Gets files from hosts that the operator allows, and from public addresses only.

    Each connection is a new one: nothing that one server or user leaves behind is there for another. Proxies that the
    environment names are not used, for they would connect to addresses that are not checked.
    """

    def __init__(self, hosts: ImageHosts, *, max_size: int, max_time: float, resolve: Resolve = resolve) -> None:
        """max_size: bytes of a file. max_time: seconds from the request for a file to its last byte."""
        self._hosts = hosts
        self._max_size = max_size
        self._max_time = max_time
        self._resolve = resolve
        self._turns = asyncio.Semaphore(MAX_FETCHES)

    async def fetch(self, url: str) -> bytes:
        """What is at a URL of http or https, by way of at most MAX_REDIRECTS redirects, to each of which the same rules
        apply. Raises ImageRefused."""
        place = self._allowed(url)
        try:
            async with asyncio.timeout(self._max_time), self._turns:
                return await self._fetched(place)
        except TimeoutError:
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
        tls = self._tls if place.scheme == "https" else None
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

    @cached_property
    def _tls(self) -> SSLContext:
        return httpcore.default_ssl_context()  # takes as long as a small fetch, and most servers never need one


def _refused(message: str) -> ImageUrlRefused:
    return ImageUrlRefused(message, param="messages")
