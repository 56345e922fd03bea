"""How adapters may be called."""

import re

MAX_ADAPTER_ID = 200
ADAPTER_ID = r"^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$"
"""A regular expression; MAX_ADAPTER_ID characters at most."""


def is_adapter_id(text: str) -> bool:
    return len(text) <= MAX_ADAPTER_ID and re.fullmatch(ADAPTER_ID, text) is not None
