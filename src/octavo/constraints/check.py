"""Whether a grammar can be kept to."""

from llguidance import LLMatcher

from octavo.constraints.library import small_tokenizer
from octavo.core.grammar import Grammar
from octavo.core.vocabulary import Vocabulary
from octavo.errors import UnsupportedGrammar

_MAX_MESSAGE = 300


def check_grammar(grammar: Grammar, vocabulary: Vocabulary) -> None:
    """Compile the grammar as an engine would. Raises UnsupportedGrammar where it is none, or allows no text."""
    matcher = LLMatcher(small_tokenizer(vocabulary), grammar.definition, log_level=0)
    reason = matcher.get_error()
    if not reason:
        matcher.compute_bitmask()
        reason = "it allows no text" if matcher.is_stopped() and not matcher.is_accepting() else matcher.get_error()
    if reason:
        raise UnsupportedGrammar(f"The grammar cannot be compiled: {' '.join(reason.split())[:_MAX_MESSAGE]}.")
