"""How a choice's chunks become its draft: as simply as what is asked for allows."""

from typing import Protocol

from octavo.core.channels import Channel
from octavo.core.output import FinishReason, TokenChunk
from octavo.core.request import Choice
from octavo.core.tools import NO_TOOLS
from octavo.core.vocabulary import Vocabulary
from octavo.streaming.content_filter import ContentFilter
from octavo.streaming.detokenizer import Detokenizer
from octavo.streaming.draft import Draft
from octavo.streaming.entry_writer import EntryWriter
from octavo.streaming.pieces import own_pieces, prompt_pieces
from octavo.streaming.pipeline import Pipeline
from octavo.streaming.stop_strings import StopStrings


class Writer(Protocol):
    """Writes what chunks add to a choice into its draft.

    cut_reason: why the choice has ended, where its text was cut. No more chunks are pushed then.
    """

    @property
    def cut_reason(self) -> FinishReason | None: ...

    def push(self, chunk: TokenChunk) -> None: ...

    def flush(self) -> None: ...


def new_writer(choice: Choice, vocabulary: Vocabulary, content_filter: ContentFilter | None, draft: Draft) -> Writer:
    logprobs = choice.request.logprobs
    if logprobs.of_output or logprobs.of_prompt:
        return EntryWriter(choice, vocabulary, content_filter, draft)
    is_all_answer = not choice.channels.markers and choice.channels.initial is Channel.ANSWER
    spares_first = bool(choice.stop) and choice.request.min_tokens > 0
    if content_filter is not None or not is_all_answer or choice.tools != NO_TOOLS or spares_first:
        return TextWriter(choice, vocabulary, content_filter, draft)
    return StoppedWriter(choice, vocabulary, draft) if choice.stop else PlainWriter(choice, vocabulary, draft)


class PlainWriter:
    """All that is generated is answer."""

    def __init__(self, choice: Choice, vocabulary: Vocabulary, draft: Draft) -> None:
        self._detokenizer = Detokenizer(vocabulary, own_pieces(choice, vocabulary))
        self._draft = draft
        draft.add_text(_echo(choice, vocabulary, self._detokenizer))

    @property
    def cut_reason(self) -> None:
        return None

    def push(self, chunk: TokenChunk) -> None:
        self._draft.num_tokens += len(chunk.tokens)
        self._draft.add_text(self._detokenizer.push(chunk.tokens))

    def flush(self) -> None:
        self._draft.add_text(self._detokenizer.flush())


class StoppedWriter:
    """All that is generated is answer, up to a stop string anywhere in it."""

    def __init__(self, choice: Choice, vocabulary: Vocabulary, draft: Draft) -> None:
        self._detokenizer = Detokenizer(vocabulary, own_pieces(choice, vocabulary))
        self._stops = StopStrings(choice.stop, included=choice.includes_stop)
        self._draft = draft
        draft.add_text(_echo(choice, vocabulary, self._detokenizer))

    @property
    def cut_reason(self) -> FinishReason | None:
        return FinishReason.STOP if self._stops.is_cut else None

    def push(self, chunk: TokenChunk) -> None:
        """Tokens behind a cut are not counted, even if they came in the same chunk."""
        for token in chunk.tokens:
            self._draft.num_tokens += 1
            self._draft.add_text(self._stops.push(self._detokenizer.push_one(token))[0])
            if self._stops.is_cut:
                break

    def flush(self) -> None:
        self._draft.add_text(self._stops.push(self._detokenizer.flush())[0])
        self._draft.add_text(self._stops.flush()[0])


class TextWriter:
    """Reasoning, calls and answer are told apart, and the answer may be cut."""

    def __init__(
        self, choice: Choice, vocabulary: Vocabulary, content_filter: ContentFilter | None, draft: Draft
    ) -> None:
        self._detokenizer = Detokenizer(vocabulary, own_pieces(choice, vocabulary))
        self._pipeline = Pipeline(choice, vocabulary, content_filter, draft.add_call)
        self._draft = draft
        draft.add_text(_echo(choice, vocabulary, self._detokenizer))

    @property
    def cut_reason(self) -> FinishReason | None:
        return self._pipeline.cut_reason

    def push(self, chunk: TokenChunk) -> None:
        """Tokens behind a cut are not counted, even if they came in the same chunk."""
        for token in chunk.tokens:
            self._draft.num_tokens += 1
            self._draft.add(self._pipeline.push(self._detokenizer.push_one(token)))
            if self.cut_reason is not None:
                break

    def flush(self) -> None:
        self._draft.add(self._pipeline.flush(self._detokenizer.flush()))


def _echo(choice: Choice, vocabulary: Vocabulary, detokenizer: Detokenizer) -> str:
    if not choice.echo:
        return ""
    return detokenizer.decode(b"".join([piece for _, piece in prompt_pieces(choice, vocabulary)]))
