"""A vision for models whose logits are given: they know where pictures are, and that these could be decoded."""

from dataclasses import dataclass

import numpy as np

from octavo.core.images import Image
from octavo.core.pictures import decode_image
from octavo.engine.batching.vision import Embeddings, Pause, Prepared, PreparedPart

NUM_TOKENS = 4
"""Of every picture."""


@dataclass(frozen=True, slots=True)
class GivenPart:
    """Implements `PreparedPart`."""

    num_tokens: int = NUM_TOKENS
    is_whole: bool = False


class GivenVision:
    """Implements `Vision`."""

    def prepare(self, image: Image) -> Prepared:
        decode_image(image, coarse_side=8)
        return [GivenPart()]

    def encode(self, part: PreparedPart, pause: Pause) -> Embeddings:
        return Embeddings(np.zeros((part.num_tokens, 1), np.float32), num_positions=part.num_tokens)

    def close(self) -> None:
        pass
