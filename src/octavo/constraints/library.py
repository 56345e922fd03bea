"""A model's vocabulary, as the grammar library takes it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llguidance import LLTokenizer, TokenizerWrapper

from octavo.core.vocabulary import Vocabulary

EncodeText = Callable[[str], Sequence[int]]
"""Tokens of a text, in the calling thread, which may be any."""


@dataclass(frozen=True, slots=True)
class _LibraryVocabulary:
    """What the library wants to know, under the names that it looks for."""

    tokens: Sequence[bytes]
    special_token_ids: Sequence[int]
    eos_token_id: int
    bos_token_id: int | None
    encode: EncodeText

    def __call__(self, text: str | bytes) -> Sequence[int]:
        return self.encode(text if isinstance(text, str) else text.decode(errors="replace"))


def library_tokenizer(vocabulary: Vocabulary, encode: EncodeText) -> LLTokenizer:
    """For following a grammar token by token. Takes some tenths of a second and some megabytes."""
    return _tokenizer(vocabulary, vocabulary.pieces, encode)


def small_tokenizer(vocabulary: Vocabulary) -> LLTokenizer:
    """For compiling only: the control tokens, and single bytes in place of all texts."""
    names = vocabulary.control_texts
    free = [token for token in range(vocabulary.size + 256) if token not in names][:256]
    pieces = [b""] * max(vocabulary.size, free[-1] + 1)
    for value, token in enumerate(free):
        pieces[token] = bytes([value])
    return _tokenizer(vocabulary, pieces, lambda text: [free[value] for value in text.encode()])


def _tokenizer(vocabulary: Vocabulary, pieces: Sequence[bytes], encode: EncodeText) -> LLTokenizer:
    names = vocabulary.control_texts
    tokens = [names[token].encode() if token in names else piece for token, piece in enumerate(pieces)]
    ends = sorted(vocabulary.eog_tokens)
    return LLTokenizer(
        TokenizerWrapper(_LibraryVocabulary(tokens, list(names), ends[0], vocabulary.bos_token, encode)), eos_token=ends
    )
