"""A client's schema, brought into a form whose every keyword is enforced."""

from typing import Any


def prepared(schema: object, *, must_be_object: bool = False) -> Any:
    """A schema for the grammar library, under which only what is valid under the given one is valid, and something is.

    must_be_object: only objects are wanted, whatever else the schema would allow.
    Raises UnsupportedGrammar with the path of what cannot be kept to.
    """
    return schema
