"""Which token each character came from."""

from collections import deque
from collections.abc import Sequence

from octavo.core.channels import Channel
from octavo.core.output import LogprobEntry
from octavo.core.vocabulary import Vocabulary
from octavo.streaming.draft import Draft
from octavo.streaming.line import KeptToken, Line, WrittenToken
from octavo.streaming.segment import Segment
from octavo.streaming.tape import Tape
from octavo.streaming.token_text import TokenTexts


class Ledger:
    """Writes settled text and the entries of its tokens into a draft, always as much of the one as of the other.

    It is told of each token when it comes, and of the text when it is settled; in between, characters are only counted.
    Tokens of the answer are listed with the bytes of it that are theirs, and those without text where the answer is on.
    """

    def __init__(self, vocabulary: Vocabulary, draft: Draft) -> None:
        self._texts = TokenTexts(vocabulary)
        self._draft = draft
        self._lines: deque[Line] = deque()
        self._tape = Tape()
        self._channel = Channel.ANSWER  # of what was settled last, before anything the answer
        self._offset = 0  # characters of the answer that were given out

    def add(self, token: WrittenToken, num_characters: int, *, is_open: bool) -> None:
        """A token that completes so many characters; is_open: whether bytes wait for the next token."""
        if not (self._lines and self._lines[-1].is_open):
            self._lines.append(Line())
        line = self._lines[-1]
        line.tokens.append(token)
        line.num_characters += num_characters
        line.is_open = is_open

    def close(self, num_characters: int) -> None:
        """No token follows; bytes that waited became so many characters."""
        if self._lines:
            self._lines[-1].num_characters += num_characters
            self._lines[-1].is_open = False

    def settle(self, segments: Sequence[Segment]) -> None:
        """Text that goes on where the last one ended."""
        for segment in segments:
            self._channel = segment[0]
            self._tape.append(segment)
            self._release()

    def _release(self) -> None:
        while self._lines and self._is_settled(self._lines[0]):
            line = self._lines.popleft()
            segments = self._tape.take(line.num_characters)
            self._draft.entries += self._entries(line, segments)
            self._draft.add(segments)
            self._offset += sum(len(text) for channel, text in segments if channel is Channel.ANSWER)

    def _is_settled(self, line: Line) -> bool:
        return not line.is_open and line.num_characters <= self._tape.length

    def _entries(self, line: Line, segments: Sequence[Segment]) -> list[LogprobEntry]:
        return [self._entry(kept) for kept in line.kept_in(segments, self._channel) if kept.token.is_listed]

    def _entry(self, kept: KeptToken) -> LogprobEntry:
        token, offset = kept.token, self._offset + kept.offset
        if kept.data == token.piece or token.logprob is None:
            return self._texts.entry(token.id, kept.data, token.logprob, offset)
        return self._texts.cut_entry(kept.data, token.logprob, offset)
