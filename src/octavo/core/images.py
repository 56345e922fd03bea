"""Pictures in a conversation, and the places that they take in a prompt."""

from dataclasses import dataclass
from hashlib import blake2b


@dataclass(frozen=True, slots=True)
class Image:
    """A picture as it came, of a format that is read and of a size that is allowed.

    data: bytes of the file. is_coarse: whether it may be seen in few pixels (`detail: low`).
    digest: of both; images with the same one are the same.
    """

    data: bytes
    is_coarse: bool
    digest: str

    @classmethod
    def of(cls, data: bytes, *, is_coarse: bool = False) -> "Image":
        return cls(data, is_coarse, blake2b(data, digest_size=16, salt=b"coarse" if is_coarse else b"").hexdigest())


@dataclass(frozen=True, slots=True)
class ImageSpan:
    """Tokens of a prompt in whose places a model sees a part of an image.

    The tokens themselves are negative: they stand in no vocabulary, and differ where the images do.

    digest: the image's. part: which part of it, from 0 on; some models see images in tiles.
    start: of the first token. num_tokens: at least one.
    is_whole: whether each token attends to all the others, so that they are computed together.
    """

    digest: str
    part: int
    start: int
    num_tokens: int
    is_whole: bool = False

    @property
    def end(self) -> int:
        return self.start + self.num_tokens


@dataclass(frozen=True, slots=True)
class ImageTokens:
    """An image as tokens of a prompt.

    tokens: those of its parts, and what the model is used to before, between and behind them.
    spans: the parts, with starts counted from the first of the tokens.
    """

    tokens: tuple[int, ...]
    spans: tuple[ImageSpan, ...]
