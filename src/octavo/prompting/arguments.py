"""The arguments of a call as what their JSON text says."""

import json

from octavo.prompting.marked_text import MarkedJson

MAX_DEPTH = 64
"""Levels of arguments; as many as a request may have."""


def object_of(arguments: str) -> object:
    """The object that the JSON text says, an empty one where it says nothing.

    What is no object, is cut short or nests too deeply is the text itself: a model may have written it so.
    """
    if isinstance(arguments, MarkedJson):
        return arguments.value
    try:
        value = json.loads(arguments) if arguments.strip() else None
    except (ValueError, RecursionError):
        return arguments
    if value is None:
        return {}
    return value if isinstance(value, dict) and not _is_deeper(value, MAX_DEPTH) else arguments


def _is_deeper(value: object, num_levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(num_levels == 0 or _is_deeper(each, num_levels - 1) for each in inner)
