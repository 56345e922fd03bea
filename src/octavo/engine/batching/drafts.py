"""Guesses at the next tokens of a sequence. The model checks them in one step: what it would have drawn decides."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from octavo.engine.batching.radix_tree import Tokens

NO_TOKENS = np.empty(0, np.int32)
MIN_MATCH = 2
MAX_MATCH = 8


class Drafter(Protocol):
    def propose(self, tokens: Tokens, max_tokens: int) -> Tokens:
        """What may follow the tokens of a sequence, at most so many; fewer, or none, where nothing suggests itself."""
        ...


class PromptLookup:
    """What came before comes again: quoted text, names, code that is edited, loops.

    Saxena, "Prompt lookup decoding" (2023).
    """

    def propose(self, tokens: Tokens, max_tokens: int) -> Tokens:
        """What followed the last tokens where they stood before: of the longest matches the latest."""
        ends = self._ends_of_earlier_matches(tokens)
        if not len(ends) or max_tokens <= 0:
            return NO_TOKENS
        following = tokens[ends[-1] :][:max_tokens]
        # Where what follows reaches the end of the text, the text has been repeating itself.
        return np.resize(following, max_tokens)

    def _ends_of_earlier_matches(self, tokens: Tokens) -> NDArray[np.intp]:
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
