"""Guesses at the next tokens of sequences. The model checks them in one step: what it would have drawn decides."""

from collections.abc import Sequence as Sequence_
from dataclasses import dataclass
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from octavo.engine.batching.grammars import GrammarState
from octavo.engine.batching.radix_tree import Tokens, num_common
from octavo.engine.batching.sequence import Sequence

NO_TOKENS = np.empty(0, np.int32)
MIN_MATCH = 2
MAX_MATCH = 8


class Drafter(Protocol):
    @property
    def first_rate(self) -> float:
        """How often a drafted token is expected to be right in a sequence that has not shown it yet."""
        ...

    def propose(self, sequences: Sequence_[Sequence], max_lengths: Sequence_[int]) -> list[Tokens]:
        """What may follow each of the sequences, at most so many tokens; fewer, or none, where nothing suggests itself.

        No sequence comes twice.
        """
        ...


class PromptLookup:
    """What came before comes again: quoted text, names, code that is edited, loops.

    Saxena, "Prompt lookup decoding" (2023).
    """

    first_rate = 0.4

    def propose(self, sequences: Sequence_[Sequence], max_lengths: Sequence_[int]) -> list[Tokens]:
        """What followed the last tokens where they stood before: of the longest matches the latest."""
        return [_repeated(each.tokens, length) for each, length in zip(sequences, max_lengths, strict=True)]


def _repeated(tokens: Tokens, max_length: int) -> Tokens:
    ends = _ends_of_earlier_matches(tokens)
    if not len(ends) or max_length <= 0:
        return NO_TOKENS
    following = _up_to_image(tokens[ends[-1] :][:max_length])
    # Where what follows reaches the end of the text, the text has been repeating itself.
    reaches_end = ends[-1] + len(following) == len(tokens)
    return np.resize(following, max_length) if reaches_end else following


def _up_to_image(tokens: Tokens) -> Tokens:
    is_image = tokens < 0
    return tokens[: is_image.argmax()] if is_image.any() else tokens


def _ends_of_earlier_matches(tokens: Tokens) -> NDArray[np.intp]:
    """Places behind tokens that are like the last ones, MIN_MATCH to MAX_MATCH of them, as many as can be found."""
    ends = np.flatnonzero(tokens[:-1] == tokens[-1:]) + 1
    for length in range(2, MAX_MATCH + 1):
        longer = ends[ends >= length]
        if len(longer):
            longer = longer[tokens[longer - length] == tokens[-length]]
        if not len(longer):
            return ends if length > MIN_MATCH else longer
        ends = longer
    return ends


@dataclass(frozen=True, slots=True, eq=False)
class _Forced:
    """tokens: what must follow the first `position` tokens of a sequence, as its text would be written."""

    tokens: Tokens
    position: int

    def behind(self, tokens: Tokens) -> Tokens:
        """What is left of it where it has been right so far."""
        since = tokens[self.position :]
        return self.tokens[len(since) :] if num_common(self.tokens, since) == len(since) else NO_TOKENS


class ForcedTokens:
    """What a grammar leaves no choice about, such as the names of properties.

    It fixes a text, not how that is cut into tokens: so these are guesses like others, if good ones. To find them
    takes the library longer than a mask does, so a guess is used up before the next one is asked for.
    """

    first_rate = 0.9

    def __init__(self) -> None:
        self._forced: WeakKeyDictionary[Sequence, _Forced] = WeakKeyDictionary()

    def propose(self, sequences: Sequence_[Sequence], max_lengths: Sequence_[int]) -> list[Tokens]:
        return [
            NO_TOKENS if each.grammar is None else self._find(each, each.grammar)[:length]
            for each, length in zip(sequences, max_lengths, strict=True)
        ]

    def _find(self, sequence: Sequence, grammar: GrammarState) -> Tokens:
        before = self._forced.get(sequence)
        left = before.behind(sequence.tokens) if before is not None else NO_TOKENS
        tokens = left if len(left) else np.array(grammar.matcher.compute_ff_tokens(), np.int32)
        self._forced[sequence] = _Forced(tokens, sequence.num_tokens)
        return tokens
