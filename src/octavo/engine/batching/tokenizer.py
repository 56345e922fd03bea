"""A model's tokens for texts and for images."""

from collections.abc import Sequence

from octavo.core.images import Image, ImageTokens
from octavo.core.vocabulary import Vocabulary
from octavo.engine.base import Fragment, LocalTokenizer
from octavo.engine.batching.image_store import ImageStore
from octavo.errors import VisionUnsupported


class SeeingTokenizer:
    """Implements `Tokenizer`. images: None where the model sees none."""

    def __init__(self, texts: LocalTokenizer, images: ImageStore | None) -> None:
        self._texts = texts
        self._images = images

    @property
    def vocabulary(self) -> Vocabulary:
        return self._texts.vocabulary

    async def encode(self, fragments: Sequence[Fragment]) -> tuple[int, ...]:
        return await self._texts.encode(fragments)

    async def encode_image(self, image: Image) -> ImageTokens:
        if self._images is None:
            raise VisionUnsupported("The model sees no images.")
        return await self._images.tokens(image)
