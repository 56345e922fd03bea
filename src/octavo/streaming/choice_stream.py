"""One choice, from tokens to text events."""

from collections.abc import Sequence

from octavo.core.output import FinishReason, TextEvent, TokenChunk
from octavo.core.vocabulary import Vocabulary
from octavo.streaming.detokenizer import Detokenizer
from octavo.streaming.stop_strings import StopStrings


class ChoiceStream:
    """Makes the text events of one choice from its token chunks.

    The joined texts, the finish reason and the number of tokens do not depend on how the tokens were chunked: tokens
    after the one that completed a stop string are not counted, even if they came in the same chunk.
    """

    def __init__(self, index: int, vocabulary: Vocabulary, stop: Sequence[str]) -> None:
        self._index = index
        self._detokenizer = Detokenizer(vocabulary)
        self._stop_strings = StopStrings(stop)
        self._num_tokens = 0
        self.is_finished = False

    def push(self, chunk: TokenChunk) -> TextEvent | None:
        """What the chunk adds to the answer; None when that is nothing, or when the choice has finished.

        A choice finishes with its last chunk or as soon as a stop string is found; what the engine would send after
        that is not wanted.
        """
        if self.is_finished:
            return None
        text = self._push_tokens(chunk.tokens)
        finish_reason = chunk.finish_reason
        if finish_reason is not None:
            text += self._stop_strings.push(self._detokenizer.flush()) + self._stop_strings.flush()
        if self._stop_strings.is_stopped:
            finish_reason = FinishReason.STOP
        self.is_finished = finish_reason is not None
        return self._event(text, finish_reason) if text or self.is_finished else None

    def _push_tokens(self, tokens: Sequence[int]) -> str:
        texts = []
        for token in tokens:
            self._num_tokens += 1
            texts.append(self._stop_strings.push(self._detokenizer.push((token,))))
            if self._stop_strings.is_stopped:
                break
        return "".join(texts)

    def _event(self, text: str, finish_reason: FinishReason | None) -> TextEvent:
        num_tokens, self._num_tokens = self._num_tokens, 0
        return TextEvent(self._index, text, num_tokens, finish_reason)
