"""Which images the child must have."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from octavo.core.images import Image
from octavo.engine.worker.frames import DropImage, HoldImage


class HeldImages:
    """Sends an image before the first request that shows it, and takes it back behind the last one."""

    def __init__(self, send: Callable[[HoldImage | DropImage], None]) -> None:
        """send: to the child, or nowhere where there is none."""
        self._send = send
        self._images: dict[str, Image] = {}
        self._num_holders: Counter[str] = Counter()

    @contextmanager
    def held(self, images: Sequence[Image]) -> Iterator[None]:
        """As long as the block runs the child has them."""
        for image in images:
            self._hold(image)
        try:
            yield
        finally:
            for image in images:
                self._drop(image)

    def send_all(self) -> None:
        """To a child that has just come."""
        for image in self._images.values():
            self._send(HoldImage(image))

    def _hold(self, image: Image) -> None:
        self._num_holders[image.digest] += 1
        if image.digest not in self._images:
            self._images[image.digest] = image
            self._send(HoldImage(image))

    def _drop(self, image: Image) -> None:
        self._num_holders[image.digest] -= 1
        if not self._num_holders[image.digest]:
            del self._images[image.digest], self._num_holders[image.digest]
            self._send(DropImage(image.digest))
