"""The texts that a client allows, in the notation of llguidance."""

from collections.abc import Mapping
from typing import Any

import llguidance
from llguidance.gbnf_to_lark import any_to_lark

from octavo.constraints.schema import prepared
from octavo.errors import UnsupportedGrammar

_MAX_MESSAGE = 300

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

    Raises UnsupportedGrammar where it is taken for GBNF and is none.
    """
    try:
        return {"lark_grammar": any_to_lark(text)}
    except Exception as error:  # the converter raises all kinds of them
        reason = " ".join(str(error).split())[:_MAX_MESSAGE]
        message = f"It is neither Lark with a rule `start` nor GBNF with a rule `root`: {reason}"
        raise UnsupportedGrammar(message) from error
