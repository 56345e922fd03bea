"""End users, as metrics, traces and the log may name them."""

from hashlib import blake2b


def user_hash(user: str) -> str:
    """The same for the same user, and not the name that a client gave; empty for none."""
    return blake2b(user.encode(errors="replace"), digest_size=8).hexdigest() if user else ""
