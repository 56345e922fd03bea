"""A model's vocabulary, as the grammar library takes it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, islice

from llguidance import LLParserLimits, LLTokenizer, TokenizerWrapper

from octavo.core.vocabulary import Vocabulary, VocabularyKey

PARSER_LIMITS = LLParserLimits(max_items_in_row=16_384)
"""An optional property of an object takes three items, and all members that may come next are in one row."""

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
    """For compiling only: the control tokens, and single bytes in place of texts. Kept for the last vocabularies."""
    return _small_tokenizer(VocabularyKey(vocabulary))


@lru_cache(maxsize=4)
def _small_tokenizer(key: VocabularyKey) -> LLTokenizer:
    vocabulary = key.vocabulary
    names = vocabulary.control_texts
    free = list(islice((token for token in count() if token not in names), 256))
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
