"""What has to be known of a model's vocabulary outside its engine."""

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, slots=True)
class SpecialToken:
    """A token whose text is matched whole, before the tokenizer proper runs.

    is_control: a token that means something to the model beyond its text (turn markers, end of text); never made
        from a user's text and never part of an answer's text. Others are plain text with a token of their own.
    strips_left, strips_right: white space before or after the text belongs to the token.
    """

    id: int
    text: str
    is_control: bool
    strips_left: bool = False
    strips_right: bool = False


@dataclass(frozen=True, slots=True)
class InfillTokens:
    """The tokens before a text, before what follows its gap, and before what fills the gap (arXiv 2207.14255)."""

    prefix: int
    suffix: int
    middle: int


@dataclass(frozen=True)
class Vocabulary:
    """pieces: the raw bytes of each token id's text; empty for control tokens.

    bos_token, eos_token: begin- and end-of-sequence token, or None where the model has none.
    adds_bos: whether the model expects bos_token at the head of a text.
    eog_tokens: ids that end a generation.
    adds_space_prefix: whether the tokenizer puts a space before a text, which its first piece then shows.
    infill: None where the model was not trained to fill gaps.
    """

    pieces: tuple[bytes, ...]
    special_tokens: tuple[SpecialToken, ...]
    eog_tokens: frozenset[int]
    bos_token: int | None
    adds_bos: bool
    eos_token: int | None = None
    adds_space_prefix: bool = False
    infill: InfillTokens | None = None

    @property
    def size(self) -> int:
        return len(self.pieces)

    @cached_property
    def control_texts(self) -> dict[int, str]:
        """The names of the control tokens, by id."""
        return {token.id: token.text for token in self.special_tokens if token.is_control}

    @cached_property
    def longest_piece(self) -> int:
        """Bytes of the longest token; a text of n bytes has at least n / longest_piece tokens."""
        longest_special = max((len(token.text.encode()) for token in self.special_tokens), default=0)
        return max(longest_special, max(map(len, self.pieces), default=1), 1)


class VocabularyKey:
    """A cache key for one vocabulary object: comparing by value would read every piece."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VocabularyKey) and other.vocabulary is self.vocabulary

    def __hash__(self) -> int:
        return id(self.vocabulary)
