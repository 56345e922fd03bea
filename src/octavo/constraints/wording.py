"""The grammar library's reasons, in words for clients."""

import re

_MAX_LENGTH = 300
_NOT_FOR_CLIENTS = re.compile(r"<state>|<backtrace>|^ *\d+ \| ", re.MULTILINE)
"""What begins the library's own state, or lines of the grammar, which may be ours and not the client's."""
_LIMITS = re.compile(r"panic|limit|fuel|too many|too large|too complex", re.IGNORECASE)


def reason_of(message: str) -> str:
    """Why something is no grammar, without a point at the end."""
    words = " ".join(_NOT_FOR_CLIENTS.split(message)[0].split())
    return "it is too large or too complex" if _LIMITS.search(words) else words[:_MAX_LENGTH].rstrip(".")
