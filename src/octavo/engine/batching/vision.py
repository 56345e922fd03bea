"""What the batching engine needs of whatever turns images into what a model sees."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from octavo.core.images import Image

Pause = Callable[[], bool]
"""Lets others compute. False where the work is not wanted any more."""


@dataclass(frozen=True, slots=True, eq=False)
class Embeddings:
    """What a model sees of a part of an image, in the places of its tokens.

    values: shape (num_tokens, width).
    places: shape (3, num_tokens), time, row and column of each, counted from the position of the first, for models
        whose positions have such sections (M-RoPE, Wang et al., arXiv 2409.12191); None where they are those of a text.
    num_positions: by which the text behind has moved on.
    is_whole: whether every token attends to all others, so that they are computed in one batch.
    """

    values: NDArray[np.float32]
    num_positions: int
    places: NDArray[np.int32] | None = None
    is_whole: bool = False


class PreparedPart(Protocol):
    """A part of an image, ready to be encoded."""

    @property
    def num_tokens(self) -> int: ...

    @property
    def is_whole(self) -> bool:
        """As its embeddings will be."""
        ...


@dataclass(frozen=True, slots=True)
class PreparedText:
    """Tokens that a model is used to around the parts of an image."""

    tokens: tuple[int, ...]


Prepared = Sequence[PreparedText | PreparedPart]
"""An image from its first token to its last."""


class Vision(Protocol):
    def prepare(self, image: Image) -> Prepared:
        """In any thread. Raises ImageRefused."""
        ...

    def encode(self, part: PreparedPart, pause: Pause) -> Embeddings:
        """In the runner's thread. Calls `pause` now and then; where that says so, gives up and raises EngineError.

        Raises EngineError where it fails.
        """
        ...

    def close(self) -> None: ...
