"""The images of the requests that an engine has, and what was made of them."""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from hashlib import shake_128
from threading import Lock

import numpy as np

from octavo.core.images import Image, ImageSpan, ImageTokens
from octavo.engine.batching.remembered import Remembered
from octavo.engine.batching.vision import Embeddings, Pause, Prepared, PreparedText, Vision
from octavo.errors import EngineError, EngineUnavailable

MAX_TOKENS = 2**18
"""Tokens of images that are known: a conversation shows its images again with every turn."""
MAX_PREPARED = 2**15
"""Tokens of images that are kept ready to be encoded. A token's pixels take some kilobytes."""
MAX_EMBEDDINGS = 256 * 2**20
"""Bytes of embeddings that are kept."""

PAUSE = 0.01
"""Seconds until the runner's thread, where nobody has anything to compute, looks whether a picture is prepared."""

Part = tuple[str, int]
"""An image's digest and the number of the part."""


class ImageStore:
    """Prepares each image once and encodes each part once, as far as it remembers.

    Images are held by the event loop and prepared in a thread of their own; parts are encoded in the runner's thread.
    Of what was made of them, what was used last is kept longest.
    """

    def __init__(self, vision: Vision) -> None:
        self._vision = vision
        self._held: dict[str, list[Image]] = {}
        self._tokens: Remembered[str, ImageTokens] = Remembered(MAX_TOKENS)
        self._prepared: Remembered[str, Prepared] = Remembered(MAX_PREPARED)
        self._embeddings: Remembered[Part, Embeddings] = Remembered(MAX_EMBEDDINGS)
        self._lock = Lock()
        self._thread = ThreadPoolExecutor(1, "images")  # decoded pictures are large: one at a time
        self._is_stopped = False

    @contextmanager
    def held(self, images: Sequence[Image]) -> Iterator[None]:
        """As long as the block runs, parts of the images may be asked for."""
        for image in images:
            self._held.setdefault(image.digest, []).append(image)
        try:
            yield
        finally:
            for image in images:
                self._drop(image.digest)

    async def tokens(self, image: Image) -> ImageTokens:
        """Raises ImageRefused where it cannot be read, and EngineUnavailable once this is stopped."""
        tokens = self._tokens.get(image.digest)
        if tokens is None:
            tokens = _tokens(image, await self._prepared_beside(image))
            self._tokens.keep(image.digest, tokens, len(tokens.tokens))
        return tokens

    def embeddings(self, span: ImageSpan) -> Embeddings | None:
        """Of a part that was encoded, as long as it is remembered."""
        return self._embeddings.get((span.digest, span.part))

    def encode(self, span: ImageSpan, pause: Pause) -> None:
        """Encode a part of an image that is held; see `Vision.encode`. Raises EngineError and ImageRefused."""
        held = tuple(self._held.get(span.digest, ()))  # as it is now: the event loop takes images back meanwhile
        if not held:
            raise EngineError("The engine has not been given an image of this request.")
        parts = [part for part in self._prepared_meanwhile(held[0], pause) if not isinstance(part, PreparedText)]
        embeddings = self._vision.encode(parts[span.part], pause)
        self._embeddings.keep((span.digest, span.part), embeddings, embeddings.values.nbytes)

    def stop(self) -> None:
        """Prepare nothing more; from any thread."""
        self._is_stopped = True
        self._thread.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """In the runner's thread."""
        self.stop()
        self._thread.shutdown()
        self._vision.close()

    async def _prepared_beside(self, image: Image) -> Prepared:
        """While the event loop goes on."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._prepare, image)
        except (RuntimeError, asyncio.CancelledError):
            if self._is_stopped:
                raise EngineUnavailable("The engine is stopping.") from None
            raise

    def _prepared_meanwhile(self, image: Image, pause: Pause) -> Prepared:
        """While others compute in the runner's thread."""
        with self._lock:
            prepared = self._prepared.get(image.digest)
        if prepared is not None:
            return prepared
        try:
            preparing = self._thread.submit(self._prepare, image)
        except RuntimeError:
            raise EngineError("The engine is stopping.") from None
        while not preparing.done():
            if not pause():
                preparing.cancel()
                raise EngineError("Nobody waits for this image any more.")
            wait((preparing,), timeout=PAUSE)
        return preparing.result()

    def _drop(self, digest: str) -> None:
        self._held[digest].pop()
        if not self._held[digest]:
            del self._held[digest]

    def _prepare(self, image: Image) -> Prepared:
        with self._lock:
            prepared = self._prepared.get(image.digest)
        if prepared is None:  # outside the lock: the runner's thread must not wait for it
            prepared = self._vision.prepare(image)
        with self._lock:
            self._prepared.keep(image.digest, prepared, _num_tokens(prepared))
        return prepared


def _num_tokens(prepared: Prepared) -> int:
    return sum(part.num_tokens for part in prepared if not isinstance(part, PreparedText))


def _tokens(image: Image, prepared: Prepared) -> ImageTokens:
    tokens: list[int] = []
    spans: list[ImageSpan] = []
    for part in prepared:
        if isinstance(part, PreparedText):
            tokens += part.tokens
        else:
            spans.append(ImageSpan(image.digest, len(spans), len(tokens), part.num_tokens, part.is_whole))
            tokens += _stand_ins(spans[-1])
    return ImageTokens(tuple(tokens), tuple(spans))


def _stand_ins(span: ImageSpan) -> list[int]:
    """Negative numbers that another part, or another image's, has as good as never."""
    data = shake_128(f"{span.digest}/{span.part}".encode()).digest(4 * span.num_tokens)
    tokens: list[int] = (np.frombuffer(data, np.int32) | np.int32(-(2**31))).tolist()
    return tokens
