"""Low-rank changes of a model's weights."""

from dataclasses import dataclass
from hashlib import blake2b, file_digest
from io import BufferedReader


@dataclass(frozen=True, slots=True)
class Adapter:
    """A LoRA adapter: the model's matrices are W + scale · alpha / rank · B A with it (Hu et al., arXiv 2106.09685).

    key: by which requests name it, another one each time that an adapter is loaded, whatever its name and file.
    path: of the GGUF file. digest: of what is in it. scale: beside the file's own alpha.
    """

    key: str
    path: str
    digest: str
    scale: float = 1.0


def digest_of(content: BufferedReader) -> str:
    """Of all that is left to read of a file."""
    return file_digest(content, lambda: blake2b(digest_size=16)).hexdigest()
