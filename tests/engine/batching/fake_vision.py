"""A vision that sees how many tokens an image says it has, and prompts that show such images."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from octavo.core.images import Image, ImageSpan
from octavo.engine.batching.image_store import ImageStore
from octavo.engine.batching.vision import Embeddings, Pause, Prepared, PreparedPart, PreparedText
from octavo.errors import EngineError, ImageRefused

WIDTH = 2
BORDER = 15
"""A token of text before each part of an image, as the fake's model is used to."""


def picture(*sizes: int, tag: str = "", is_whole: bool = False) -> Image:
    """With parts of so many tokens. tag: makes it another one than those of the same sizes."""
    return Image.of(f"{'whole' if is_whole else 'parts'} {' '.join(map(str, sizes))}/{tag}".encode())


UNREADABLE = Image.of(b"unreadable")


@dataclass(frozen=True, slots=True)
class FakePart:
    """Implements `PreparedPart`."""

    digest: str
    number: int
    num_tokens: int
    is_whole: bool


class FakeVision:
    """Implements `Vision`. prepared, encoded: what it was asked for, in order."""

    def __init__(self, *, num_pauses: int = 0, failing: frozenset[str] = frozenset(), width: int = WIDTH) -> None:
        """num_pauses: that each part takes. failing: digests of images on which it fails behind the pauses."""
        self._num_pauses = num_pauses
        self._failing = failing
        self._width = width
        self.prepared: list[str] = []
        self.encoded: list[tuple[str, int]] = []
        self.is_closed = False

    def prepare(self, image: Image) -> Prepared:
        self.prepared.append(image.digest)
        parts = list(_parts(image))
        return [each for part in parts for each in (PreparedText((BORDER,)), part)]

    def encode(self, part: PreparedPart, pause: Pause) -> Embeddings:
        assert isinstance(part, FakePart)
        self.encoded.append((part.digest, part.number))
        for _ in range(self._num_pauses):
            if not pause():
                raise EngineError("Nobody waits for this image any more.")
        if part.digest in self._failing:
            raise EngineError("The model failed on an image of this request.")
        return Embeddings(seen(part, self._width), num_positions=part.num_tokens, is_whole=part.is_whole)

    def close(self) -> None:
        self.is_closed = True


def _parts(image: Image) -> Iterator[FakePart]:
    """Raises ImageRefused."""
    kind, *sizes = image.data.partition(b"/")[0].decode().split()
    if kind not in ("whole", "parts"):
        raise ImageRefused("The image cannot be read.", param="messages")
    for number, size in enumerate(sizes):
        yield FakePart(image.digest, number, int(size), kind == "whole")


def stand_ins(part: FakePart) -> NDArray[np.int32]:
    """Negative tokens that no other part has."""
    checksums = [zlib.crc32(f"{part.digest}/{part.number}/{index}".encode()) for index in range(part.num_tokens)]
    return (np.array(checksums, np.uint32) | np.uint32(2**31)).view(np.int32)


def seen(part: FakePart, width: int = WIDTH) -> NDArray[np.float32]:
    """What the model is shown in place of `stand_ins`: what tells these, and their numbers in the part."""
    values = np.zeros((part.num_tokens, width), np.float32)
    values[:, 0], values[:, 1] = fingerprints(stand_ins(part)), np.arange(part.num_tokens)
    return values


def fingerprints(tokens: NDArray[np.int32]) -> NDArray[np.int32]:
    """Of stand-ins: the bits that no adapter changes in an `AdaptedRunner`."""
    return tokens & 0xFFFF


@dataclass(frozen=True, slots=True)
class Shown:
    """A prompt with images."""

    tokens: tuple[int, ...]
    spans: tuple[ImageSpan, ...]


def shown(*parts: int | Image) -> Shown:
    """Tokens of text, and images without borders: their parts touch."""
    tokens: list[int] = []
    spans: list[ImageSpan] = []
    for part in parts:
        if isinstance(part, int):
            tokens.append(part)
            continue
        for each in _parts(part):
            spans.append(ImageSpan(each.digest, each.number, len(tokens), each.num_tokens, each.is_whole))
            tokens += stand_ins(each).tolist()
    return Shown(tuple(tokens), tuple(spans))


@contextmanager
def holding(*images: Image, vision: FakeVision | None = None) -> Iterator[ImageStore]:
    store = ImageStore(vision or FakeVision())
    try:
        with store.held(images):
            yield store
    finally:
        store.close()
