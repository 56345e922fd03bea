"""The images of a request."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from time import perf_counter

from octavo.core.images import Image
from octavo.core.limits import Limits
from octavo.errors import ImageRefused
from octavo.prompting import checked_image
from octavo.service.data_url import data_of, is_data_url
from octavo.service.image_fetcher import ImageFetcher
from octavo.service.image_hosts import ImageHosts
from octavo.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True)
class ImageLink:
    """Where a client says that an image is: url is one of data:, http or https. is_coarse: see Image."""

    url: str
    is_coarse: bool = False


class ImageSource:
    """Reads the images in requests and fetches those elsewhere, and checks all of them."""

    def __init__(self, limits: Limits, metrics: Metrics, hosts: ImageHosts) -> None:
        """hosts: from which images may be fetched."""
        self._limits = limits
        self._metrics = metrics
        self._fetcher = ImageFetcher(hosts, max_size=limits.max_image_size, max_time=limits.max_fetch_time)

    async def images(self, links: Iterable[ImageLink], *, model: str) -> Mapping[ImageLink, Image]:
        """The image behind each link, each got once and all at the same time; none of their pixels is decoded.

        model: id of the one that is to see them. Raises ImageRefused for the first that is not to be had.
        """
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {link: group.create_task(self._image(link, model)) for link in dict.fromkeys(links)}
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return {link: task.result() for link, task in tasks.items()}

    async def _image(self, link: ImageLink, model: str) -> Image:
        source = "data" if is_data_url(link.url) else "http"
        try:
            image = await self._got(link)
        except ImageRefused:
            self._metrics.count_image(model, source, "refused")
            raise
        self._metrics.count_image(model, source, "ok")
        return image

    async def _got(self, link: ImageLink) -> Image:
        """Decoding and digesting megabytes is not done on the event loop."""
        if is_data_url(link.url):
            return await asyncio.to_thread(self._read, link)
        started = perf_counter()
        try:
            data = await self._fetcher.fetch(link.url)
        finally:
            self._metrics.observe_image_fetch(perf_counter() - started)
        return await asyncio.to_thread(self._checked, data, link)

    def _read(self, link: ImageLink) -> Image:
        return self._checked(data_of(link.url, max_size=self._limits.max_image_size), link)

    def _checked(self, data: bytes, link: ImageLink) -> Image:
        return checked_image(
            data,
            is_coarse=link.is_coarse,
            max_size=self._limits.max_image_size,
            max_pixels=self._limits.max_image_pixels,
        )
