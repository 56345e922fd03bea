"""libmtmd as a `Vision`."""

from dataclasses import dataclass
from pathlib import Path

from octavo.core.images import Image
from octavo.core.pictures import decode_image
from octavo.engine.batching.vision import Embeddings, Pause, Prepared, PreparedPart, PreparedText
from octavo.engine.runners.llama_cpp import binding
from octavo.engine.runners.llama_cpp.mtmd_binding import Chunk, VisionContext, image_side
from octavo.engine.runners.llama_cpp.slices import Slices
from octavo.errors import EngineError, ImageRefused, ModelLoadError

DEFAULT_SIDE = 512
"""Pixels of a coarse image's sides where the file does not say for how many the encoder was made."""


@dataclass(frozen=True, slots=True)
class LlamaPart:
    """Implements `PreparedPart`."""

    chunk: Chunk

    @property
    def num_tokens(self) -> int:
        return self.chunk.num_tokens

    @property
    def is_whole(self) -> bool:
        return self.chunk.is_non_causal


class LlamaVision:
    """Implements `Vision`."""

    def __init__(self, path: Path, model: binding.Model, *, num_threads: int) -> None:
        """Raises ModelLoadError."""
        self._slices = Slices()
        try:
            self._context = VisionContext(path, model, num_threads=num_threads, on_node=self._slices.on_node)
        except OSError as error:
            raise ModelLoadError(f"{path.name}: {error}.") from error
        if not self._context.has_vision:
            raise ModelLoadError(f"{path.name}: the file is not for images.")
        self._coarse_side = image_side(path) or DEFAULT_SIDE

    def prepare(self, image: Image) -> Prepared:
        picture = decode_image(image, coarse_side=self._coarse_side)
        try:
            chunks = self._context.prepare(picture.width, picture.height, picture.rgb)
        except OSError as error:
            raise ImageRefused("The model cannot see an image of this shape.", param="messages") from error
        return [PreparedText(chunk.text_tokens) if chunk.is_text else LlamaPart(chunk) for chunk in chunks]

    def encode(self, part: PreparedPart, pause: Pause) -> Embeddings:
        assert isinstance(part, LlamaPart)
        chunk = part.chunk
        try:
            values = self._slices.run(lambda: self._context.encode(chunk), pause)
        except OSError as error:
            raise EngineError("The model failed on an image of this request.") from error
        return Embeddings(
            values,
            num_positions=chunk.num_positions,
            places=chunk.places() if self._context.uses_places else None,
            is_whole=chunk.is_non_causal,
        )

    def close(self) -> None:
        self._context.close()
