"""What sequences see next."""

from collections.abc import Callable
from collections.abc import Sequence as Sequence_

from octavo.core.images import ImageSpan
from octavo.engine.batching.runner import ImagePiece
from octavo.engine.batching.sequence import Sequence
from octavo.engine.batching.vision import Embeddings

EmbeddingsOf = Callable[[ImageSpan], Embeddings | None]
"""What a model sees of a part of an image; None where that is not encoded yet."""


class Sight:
    """Tells who can go on from who has an image ahead that must be encoded first."""

    def __init__(self, embeddings_of: EmbeddingsOf) -> None:
        self._embeddings_of = embeddings_of

    def is_clear(self, sequence: Sequence) -> bool:
        """Whether the sequence's next tokens can be computed."""
        span = sequence.span_ahead
        return span is None or self._embeddings_of(span) is not None

    def piece(self, sequence: Sequence) -> ImagePiece | None:
        """What the sequence, which can go on, sees next; None where that is text."""
        if (span := sequence.span_ahead) is None:
            return None
        embeddings = self._embeddings_of(span)
        assert embeddings is not None
        return ImagePiece(embeddings, sequence.num_computed - span.start)

    def unseen(self, running: Sequence_[Sequence]) -> ImageSpan | None:
        """What to encode next: for the first that is at an image, if it must wait for that.

        running: in order of admission. Nobody who came later goes before: their images could make its own forgotten.
        """
        span = next((span for each in running if (span := each.span_ahead) is not None), None)
        return span if span is not None and self._embeddings_of(span) is None else None


def is_at(sequence: Sequence, span: ImageSpan) -> bool:
    """Whether the sequence's next token is in the same part of the same image, be it elsewhere in its prompt."""
    ahead = sequence.span_ahead
    return ahead is not None and (ahead.digest, ahead.part) == (span.digest, span.part)
