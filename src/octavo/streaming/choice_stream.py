"""One choice, from tokens to text events."""

from octavo.core.output import FinishReason, TextEvent, TokenChunk
from octavo.core.request import Choice
from octavo.core.vocabulary import Vocabulary
from octavo.streaming.content_filter import ContentFilter
from octavo.streaming.draft import Draft
from octavo.streaming.writers import new_writer


class ChoiceStream:
    """Makes the text events of one choice from its token chunks.

    The joined texts and entries, the finish reason and the numbers of tokens do not depend on how the tokens were
    chunked: tokens after the one that completed a stop string are not counted, even if they came in the same chunk.
    Where entries are asked for, the texts of events end where tokens do, and each event has the entries of its text.
    """

    def __init__(self, choice: Choice, vocabulary: Vocabulary, content_filter: ContentFilter | None = None) -> None:
        self._draft = Draft(choice.index)
        self._writer = new_writer(choice, vocabulary, content_filter, self._draft)
        self.is_finished = False

    def push(self, chunk: TokenChunk) -> TextEvent | None:
        """What the chunk adds to the answer; None when that is nothing, or when the choice has finished.

        A choice finishes with its last chunk or as soon as its text is cut by a stop string or the filter; what the
        engine would send after that is not wanted.
        """
        if self.is_finished:
            return None
        self._draft.num_cached += chunk.num_cached
        self._writer.push(chunk)
        reason = self._writer.cut_reason or chunk.finish_reason
        if reason is not None:
            return self._last(reason)
        return None if self._draft.is_empty else self._draft.taken()

    def end(self, reason: FinishReason) -> TextEvent:
        """End an unfinished choice for a reason that is not in its tokens, with all its text so far; a cut that was
        still undecided comes before it."""
        return self._last(reason)

    def _last(self, reason: FinishReason) -> TextEvent:
        self._writer.flush()
        self.is_finished = True
        reason = self._writer.cut_reason or reason
        is_call = reason is FinishReason.STOP and self._draft.has_called
        return self._draft.taken(FinishReason.TOOL_CALLS if is_call else reason)
