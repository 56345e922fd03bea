"""Tokens to text, whole characters only."""

import codecs
from collections.abc import Sequence

from octavo.core.vocabulary import Vocabulary

_Utf8Decoder = codecs.getincrementaldecoder("utf-8")


class Detokenizer:
    """Makes the text of one answer from its tokens.

    Tokens may split characters: bytes wait until their character is whole or can no longer become whole. The texts,
    joined, are `bytes.decode("utf-8", errors="replace")` of all the tokens' bytes.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._pieces = vocabulary.pieces
        self._decoder = _Utf8Decoder(errors="replace")

    def push(self, tokens: Sequence[int]) -> str:
        """The characters that these tokens complete."""
        return self._decoder.decode(b"".join([self._pieces[token] for token in tokens]))

    def flush(self) -> str:
        """What the bytes of an unfinished character become at the end: U+FFFD, or nothing."""
        return self._decoder.decode(b"", final=True)
