"""Tokens to text, whole characters only."""

import codecs
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from octavo.core.vocabulary import Vocabulary

_Utf8Decoder = codecs.getincrementaldecoder("utf-8")
_NONE: Mapping[int, bytes] = MappingProxyType({})


class Detokenizer:
    """Makes the text of one answer from its tokens.

    Tokens may split characters: bytes wait until their character is whole or can no longer become whole. The texts,
    joined, are `bytes.decode("utf-8", errors="replace")` of all the tokens' bytes.

    own_pieces: the bytes of tokens whose text in this answer is not the vocabulary's.
    """

    def __init__(self, vocabulary: Vocabulary, own_pieces: Mapping[int, bytes] = _NONE) -> None:
        self._pieces = vocabulary.pieces
        self._own_pieces = own_pieces
        self._decoder = _Utf8Decoder(errors="replace")
        self._waits = False

    def push(self, tokens: Sequence[int]) -> str:
        """The characters that these tokens complete."""
        own, pieces = self._own_pieces, self._pieces
        return self.decode(b"".join([own.get(token, pieces[token]) for token in tokens]))

    def push_one(self, token: int) -> str:
        """As push, for a single token."""
        return self.decode(self.piece(token))

    def decode(self, data: bytes) -> str:
        """The characters that these bytes complete."""
        if not self._waits and data.isascii():  # most tokens: the incremental decoder takes several times as long
            return data.decode("ascii")
        text = self._decoder.decode(data)
        self._waits = bool(self._decoder.getstate()[0])
        return text

    def flush(self) -> str:
        """What the bytes of an unfinished character become at the end: U+FFFD, or nothing."""
        self._waits = False
        return self._decoder.decode(b"", final=True)

    def piece(self, token: int) -> bytes:
        """The bytes of a token in this answer."""
        return self._own_pieces.get(token, self._pieces[token])

    @property
    def is_between_characters(self) -> bool:
        """Whether no bytes wait."""
        return not self._waits
