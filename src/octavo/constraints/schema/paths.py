"""Where something stands in a client's schema."""

import re
from functools import lru_cache

from octavo.errors import UnsupportedGrammar

Path = tuple[str | int, ...]
"""Names and indices that lead there from the root."""

_PLAIN = re.compile(r"[\w$-]+")


@lru_cache(16_384)
def spelled_path(path: Path) -> str:
    """As people read it: `$.properties.a.anyOf[0]`."""
    return "$" + "".join(map(_step, path))


def unsupported(path: Path, reason: str) -> UnsupportedGrammar:
    return UnsupportedGrammar(f"{spelled_path(path)}: {reason}")


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _PLAIN.fullmatch(step) else f'["{step}"]'
