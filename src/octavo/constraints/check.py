"""Whether a grammar can be kept to."""

import re

from llguidance import LLMatcher

from octavo.constraints.library import small_tokenizer
from octavo.core.grammar import Grammar
from octavo.core.vocabulary import Vocabulary
from octavo.errors import UnsupportedGrammar

_MAX_MESSAGE = 300
_QUOTATION = re.compile(r"^ *\d+ \| ", re.MULTILINE)


def check_grammar(grammar: Grammar, vocabulary: Vocabulary) -> None:
    """Compile the grammar as an engine would. Raises UnsupportedGrammar where it is none, or allows no text."""
    matcher = LLMatcher(small_tokenizer(vocabulary), grammar.definition, log_level=0)
    reason = matcher.get_error()
    if not reason:
        matcher.compute_bitmask()
        reason = "it allows no text" if matcher.is_stopped() and not matcher.is_accepting() else matcher.get_error()
    if reason:
        # Behind the reason the library shows lines of the grammar, which may be ours and not the client's.
        words = " ".join(_QUOTATION.split(reason)[0].split())
        raise UnsupportedGrammar(f"The grammar cannot be compiled: {words[:_MAX_MESSAGE]}.")
