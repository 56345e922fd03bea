"""A key of the API, and what the server keeps of it."""

import re
import secrets
from dataclasses import dataclass
from hashlib import sha256
from math import inf

from octavo.core.caller import Caller

MAX_LENGTH = 512
_PREFIX = "octv_"
"""By which people and programs that look for lost secrets know one."""
_NUM_RANDOM_BYTES = 32
_KEY = re.compile(f"[!-~]{{1,{MAX_LENGTH}}}")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """digest: of the key itself, which is kept nowhere. expires: Unix time in seconds."""

    digest: bytes
    caller: Caller
    expires: float = inf


def new_key() -> str:
    """A random key, of 256 bits."""
    return _PREFIX + secrets.token_urlsafe(_NUM_RANDOM_BYTES)


def is_key(text: str) -> bool:
    """Whether a header can carry it as a key: some visible ASCII characters, at most MAX_LENGTH."""
    return _KEY.fullmatch(text) is not None


def digest_of(key: str) -> bytes:
    """SHA-256, 32 bytes, of a text that is_key.

    A slow hash makes up for what a password lacks: the likely ones are few, and can be tried. Random keys of 256 bits
    cannot be, however fast the hash; and this one is computed for every request.
    """
    return sha256(key.encode("ascii")).digest()
