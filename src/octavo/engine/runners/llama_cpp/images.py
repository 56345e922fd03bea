"""libmtmd as a `Vision`."""

from dataclasses import dataclass
from pathlib import Path

from octavo.core.images import Image
from octavo.core.pictures import decode_image
from octavo.engine.batching.vision import Embeddings, Pause, Prepared, PreparedPart, PreparedText
from octavo.engine.runners.llama_cpp import binding
from octavo.engine.runners.llama_cpp.mtmd_binding import Chunk, VisionContext, VisionMetadata
from octavo.engine.runners.llama_cpp.slices import Slices
from octavo.errors import EngineError, ImageRefused, ModelLoadError

DEFAULT_SIDE = 512
"""Pixels of a coarse image's sides where the file does not say for how many the encoder was made."""
DEPENDS_ON_PLACE = frozenset({"hunyuanvl", "deepseek4v"})
"""Projectors whose tokens are others at each place of a prompt; here an image is the same wherever it is."""


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

    def __init__(self, path: Path, model: binding.Model, *, num_threads: int, max_whole: int) -> None:
        """max_whole: tokens that are computed in one step, and so of an image that is seen as a whole.

        Raises ModelLoadError.
        """
        self._slices = Slices()
        self._max_whole = max_whole
        try:
            self._coarse_side = _coarse_side(path)
            self._context = self._create(path, model, num_threads)
        except OSError as error:
            raise ModelLoadError(f"{path.name}: {error}.") from error
        if not self._context.has_vision:
            raise ModelLoadError(f"{path.name}: the file is not for images.")

    def _create(self, path: Path, model: binding.Model, num_threads: int) -> VisionContext:
        on_node = self._slices.on_node
        context = VisionContext(path, model, num_threads=num_threads, on_node=on_node)
        if not context.is_non_causal:
            return context
        context.close()  # that is known only once the file is loaded
        return VisionContext(path, model, num_threads=num_threads, on_node=on_node, max_tokens=self._max_whole)

    def prepare(self, image: Image) -> Prepared:
        picture = decode_image(image, coarse_side=self._coarse_side)
        try:
            chunks = self._context.prepare(picture.width, picture.height, picture.rgb)
        except (OSError, MemoryError) as error:
            raise ImageRefused("The model cannot see an image of this shape.", param="messages") from error
        prepared = [PreparedText(chunk.text_tokens) if chunk.is_text else LlamaPart(chunk) for chunk in chunks]
        self._check_fits(prepared)
        return prepared

    def _check_fits(self, prepared: Prepared) -> None:
        wholes = (part.num_tokens for part in prepared if not isinstance(part, PreparedText) and part.is_whole)
        if (num_tokens := max(wholes, default=0)) > self._max_whole:
            message = (
                f"The image has {num_tokens} tokens, which this model must see in one step; a step of this server has "
                f"at most {self._max_whole} (--token-budget)."
            )
            raise ImageRefused(message, param="messages")

    def encode(self, part: PreparedPart, pause: Pause) -> Embeddings:
        assert isinstance(part, LlamaPart)
        chunk = part.chunk
        try:
            values = self._slices.run(lambda: self._context.encode(chunk), pause)
        except (OSError, MemoryError) as error:
            raise EngineError("The model failed on an image of this request.") from error
        return Embeddings(
            values,
            num_positions=chunk.num_positions,
            places=chunk.places() if self._context.uses_places else None,
            is_whole=chunk.is_non_causal,
        )

    def close(self) -> None:
        self._context.close()


def _coarse_side(path: Path) -> int:
    """Raises OSError, and ModelLoadError for an encoder of a kind that is not supported."""
    with VisionMetadata(path) as metadata:
        if metadata.projector in DEPENDS_ON_PLACE:
            raise ModelLoadError(f"{path.name}: vision encoders of the kind {metadata.projector} are not supported.")
        return metadata.image_side or DEFAULT_SIDE
