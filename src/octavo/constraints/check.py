"""Whether a grammar can be kept to."""

import asyncio

from llguidance import LLMatcher

from octavo.core.grammar import Grammar
from octavo.errors import UnsupportedGrammar

_MAX_MESSAGE = 300


async def check_grammar(grammar: Grammar, *, deadline: float) -> None:
    """Raises UnsupportedGrammar where it is no grammar, or takes more than `deadline` seconds to compile."""
    try:
        check = asyncio.to_thread(LLMatcher.validate_grammar_with_warnings, grammar.definition)
        is_wrong, messages = await asyncio.wait_for(check, deadline)
    except TimeoutError as error:
        raise UnsupportedGrammar(f"The grammar takes more than {deadline:g} s to compile.") from error
    if is_wrong:
        raise UnsupportedGrammar(f"The grammar cannot be compiled: {messages[0].strip()[:_MAX_MESSAGE]}")
