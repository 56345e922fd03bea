"""What an answer may be, as one grammar that every engine can keep to: JSON of a schema, a regular expression, a
grammar of the client's own, or calls of tools; behind the model's reasoning, where it reasons."""

from octavo.constraints.check import check_grammar
from octavo.constraints.grammars import (
    MAX_CALLS,
    answer_grammar,
    answer_or_calls_grammar,
    calls_grammar,
    text_with_calls_grammar,
)
from octavo.constraints.maker import GrammarMaker, Recipe, compiling_thread
from octavo.constraints.parts import Part, any_object_part, grammar_part, regex_part, schema_part

__all__ = [
    "MAX_CALLS",
    "GrammarMaker",
    "Part",
    "Recipe",
    "answer_grammar",
    "answer_or_calls_grammar",
    "any_object_part",
    "calls_grammar",
    "check_grammar",
    "compiling_thread",
    "grammar_part",
    "regex_part",
    "schema_part",
    "text_with_calls_grammar",
]
