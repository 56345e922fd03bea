"""Whether a grammar can be kept to."""

from time import thread_time

from llguidance import LLMatcher

from octavo.constraints.library import PARSER_LIMITS, small_tokenizer
from octavo.constraints.wording import reason_of
from octavo.core.grammar import Grammar
from octavo.core.vocabulary import Vocabulary
from octavo.errors import UnsupportedGrammar

MAX_MASK_TIME = 0.1
"""Seconds of computing for the tokens that may come first; every stream waits as long for those that may come later."""


def check_grammar(grammar: Grammar, vocabulary: Vocabulary) -> None:
    """Compile the grammar as an engine would. Raises UnsupportedGrammar where it is none, or allows no text."""
    matcher = LLMatcher(small_tokenizer(vocabulary), grammar.definition, log_level=0, limits=PARSER_LIMITS)
    _refuse(matcher.get_error())
    begin = thread_time()
    matcher.compute_bitmask()
    if matcher.is_stopped() and not matcher.is_accepting():
        _refuse("it allows no text" if "NoExtension" in matcher.stop_reason() else matcher.get_error())
    if thread_time() - begin > MAX_MASK_TIME:
        _refuse("it allows too much at its beginning")


def _refuse(reason: str) -> None:
    if reason:
        raise UnsupportedGrammar(f"The grammar cannot be compiled: {reason_of(reason)}.")
