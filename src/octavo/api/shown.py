"""What a client sent, as error messages and headers may repeat it: short, printable, harmless."""

import json
import re
from typing import Any

_MAX_VALUE = 40
_MAX_NAME = 64
_UNSAFE_IN_NAME = re.compile(r"[^A-Za-z0-9_.:-]")


def shown(value: Any) -> str:
    """A JSON value in a few characters of ASCII."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "an empty list" if not value else "a list"
    if isinstance(value, str):
        return json.dumps(value if len(value) <= _MAX_VALUE else f"{value[:_MAX_VALUE]}…")
    text = json.dumps(value)
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}..."


def shown_name(name: str) -> str:
    """A field's name that is safe in a header too."""
    return _UNSAFE_IN_NAME.sub("?", name[:_MAX_NAME])
