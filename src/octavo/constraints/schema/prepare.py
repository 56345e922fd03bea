"""A client's JSON schema, as a grammar whose every text is valid under it."""

from octavo.constraints.schema.grammar import GrammarWriter
from octavo.constraints.schema.paths import unsupported
from octavo.constraints.schema.references import Document
from octavo.constraints.schema.values import KINDS


def prepared(schema: object, *, must_be_object: bool = False) -> str:
    """A grammar in llguidance's Lark: JSON that is valid under the schema, though not all of it; at least one text.

    must_be_object: only objects are wanted, whatever else the schema would allow.
    Raises UnsupportedGrammar with the path of what is malformed, or cannot be kept to.
    """
    kinds = frozenset({"object"} if must_be_object else KINDS)
    try:
        return GrammarWriter(Document(schema)).text(kinds)
    except RecursionError as error:
        raise unsupported((), "is nested too deeply.") from error
