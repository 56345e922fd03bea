"""Tokens that share characters."""

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from octavo.core.channels import Channel
from octavo.core.output import TokenLogprob
from octavo.streaming.segment import Segment

_Utf8Decoder = codecs.getincrementaldecoder("utf-8")
_REPLACEMENT = "\ufffd"


@dataclass(frozen=True, slots=True)
class WrittenToken:
    """A token of a choice's text, or between its characters.

    piece: its bytes there, before anything is cut. logprob: None where there is none, as for a prompt's first token.
    is_listed: whether an entry of it is asked for.
    """

    id: int
    piece: bytes
    logprob: TokenLogprob | None
    is_listed: bool


@dataclass(frozen=True, slots=True)
class KeptToken:
    """What the answer has of a token.

    data: its bytes. offset: the answer's characters before the first of the token's, counted from the line's beginning.
    """

    token: WrittenToken
    data: bytes
    offset: int


@dataclass(slots=True)
class Line:
    """Tokens that share characters, or a single one that has its own, or none.

    num_characters: of its text, which is what the bytes of its tokens are when decoded by themselves.
    is_open: whether bytes wait for the next token.
    """

    num_characters: int = 0
    is_open: bool = True
    tokens: list[WrittenToken] = field(default_factory=list)

    def kept_in(self, segments: Sequence[Segment], channel: Channel) -> list[KeptToken]:
        """The tokens of the answer. segments: the line's text. channel: that of a line without text."""
        if len(self.tokens) > 1 or len(segments) > 1:
            return list(self._kept_in_parts(segments))
        token = self.tokens[0]
        is_kept = (segments[0][0] if segments else channel) is Channel.ANSWER
        return [KeptToken(token, token.piece, 0)] if is_kept else []

    def _kept_in_parts(self, segments: Sequence[Segment]) -> Iterator[KeptToken]:
        is_kept = [channel is Channel.ANSWER for channel, text in segments for _ in text]
        offsets = [0, *accumulate(is_kept)]
        data = b"".join([token.piece for token in self.tokens])
        characters = _characters_of(data)
        parts = [data[place : place + 1] for place in range(len(data))]
        if not all(is_kept):
            parts = _mended(parts, characters, "".join([text for _, text in segments]))
        end = 0
        for token in self.tokens:
            begin, end = end, end + len(token.piece)
            # A token without bytes stands within the character that the byte before it is part of.
            places = [place for place in range(begin, end) or (begin - 1,) if is_kept[characters[place]]]
            if places:
                kept = b"".join([parts[place] for place in places if place >= begin])
                yield KeptToken(token, kept, offsets[characters[places[0]]])


def _characters_of(data: bytes) -> list[int]:
    """For each byte the index of the character that it is part of when all are decoded."""
    decoder = _Utf8Decoder(errors="replace")
    characters: list[int] = []
    length = 0
    for place in range(len(data)):
        length += len(decoder.decode(data[place : place + 1]))
        waits = bool(decoder.getstate()[0])
        characters.append(length if waits else length - 1)
    return characters


def _mended(parts: list[bytes], characters: list[int], text: str) -> list[bytes]:
    """Bytes that were no character are written as U+FFFD, for what comes behind a cut might make them one."""
    before = [-1, *characters]
    return [
        part if text[character] != _REPLACEMENT else b"" if character == before[place] else _REPLACEMENT.encode()
        for place, (part, character) in enumerate(zip(parts, characters, strict=True))
    ]
