"""The texts that a client allows, in the notation of llguidance."""

import json
from collections.abc import Mapping
from typing import Any

import llguidance
from llguidance import LLMatcher
from llguidance.gbnf_to_lark import any_to_lark

from octavo.constraints.schema import prepared
from octavo.constraints.wording import reason_of
from octavo.errors import UnsupportedGrammar

MAX_CHARACTERS = 2**14
MAX_LINES = 1000
"""Of a client's own grammar: what may come next is found in a time that grows with the square of its size."""

Part = Mapping[str, Any]
"""One grammar of llguidance's list: {"lark_grammar": text}."""


def schema_part(schema: object) -> Part:
    """JSON that is valid under a schema. Raises UnsupportedGrammar where that cannot be promised."""
    return {"lark_grammar": prepared(schema)}


def any_object_part() -> Part:
    return schema_part({"type": "object"})


def regex_part(pattern: str) -> Part:
    """What a regular expression of Rust's `regex` matches as a whole; without look-around and back-references."""
    return {"lark_grammar": f"start: /{llguidance.regex_to_lark(pattern, use_ascii='')}/"}


def grammar_part(text: str) -> Part:
    """A grammar in Lark's notation, which begins with the rule `start`, or in GBNF, which begins with `root`.

    Raises UnsupportedGrammar where it is neither, or too large to be followed quickly.
    """
    if len(text) > MAX_CHARACTERS or text.count("\n") > MAX_LINES:
        raise UnsupportedGrammar(f"A grammar has at most {MAX_CHARACTERS} characters and {MAX_LINES} lines.")
    try:
        part = {"lark_grammar": any_to_lark(text)}
    except Exception as error:  # the converter raises all kinds of them
        message = f"It is neither Lark with a rule `start` nor GBNF with a rule `root`: {reason_of(str(error))}."
        raise UnsupportedGrammar(message) from error
    _check_alone(part)
    return part


def _check_alone(part: Part) -> None:
    """Beside no other grammar, so that it refers to none."""
    is_wrong, messages = LLMatcher.validate_grammar_with_warnings(json.dumps({"grammars": [part]}))
    if is_wrong:
        raise UnsupportedGrammar(f"The grammar cannot be compiled: {reason_of(messages[0])}.")
