"""Whose key it is."""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from hashlib import scrypt
from hmac import compare_digest
from typing import Protocol

from octavo.core.api_key import MAX_LENGTH, ApiKey, digest_of, is_key
from octavo.core.caller import ANYONE, Caller, KeyLimits
from octavo.errors import Unauthenticated

StoredKeys = Callable[[], Awaitable[Mapping[bytes, ApiKey]]]
"""The keys as they are now, by digest: more may be there later, and revoked ones no more."""


class Keyring(Protocol):
    """is_open: whether anybody may ask, with any key or none."""

    is_open: bool

    async def caller(self, key: str) -> Caller:
        """Who presents this key; empty is none. Raises Unauthenticated."""
        ...


class OpenKeyring:
    """Of a server that has no keys."""

    is_open = True

    def __init__(self, limits: KeyLimits = ANYONE.limits) -> None:
        """limits: of all that ask, together."""
        self._anyone = replace(ANYONE, limits=limits)

    async def caller(self, key: str) -> Caller:
        return self._anyone


async def no_stored_keys() -> Mapping[bytes, ApiKey]:
    return {}


class ClosedKeyring:
    """Knows the operator's own keys, which may do everything, and stored ones."""

    is_open = False

    def __init__(
        self, own: Iterable[str], stored: StoredKeys = no_stored_keys, *, default_limits: KeyLimits = ANYONE.limits
    ) -> None:
        """default_limits: where a key has none of its own. Raises ValueError, which names no key."""
        self._own = {key.digest: key for key in map(_own_key, own)}
        self._stored = stored
        self._default_limits = default_limits

    async def caller(self, key: str) -> Caller:
        if not key:
            raise Unauthenticated("A key is needed: send it in one header, as `Authorization: Bearer KEY`.")
        found = await self._find(key) if is_key(key) else None
        if found is None or found.expires <= time.time():
            raise Unauthenticated("This key is not known, or no longer.")
        return replace(found.caller, limits=_completed(found.caller.limits, self._default_limits))

    async def _find(self, key: str) -> ApiKey | None:
        """The operator's own before a stored one."""
        # Looking for a digest takes a time that tells something of known digests at most, and from a digest no way
        # leads to its key.
        digest, stored = digest_of(key), await self._stored()
        found = self._own.get(digest) or stored.get(digest)
        return found if found is not None and compare_digest(found.digest, digest) else None


def _own_key(key: str) -> ApiKey:
    if not is_key(key):
        raise ValueError(f"A key has 1 to {MAX_LENGTH} visible ASCII characters, and no space.")
    return ApiKey(digest_of(key), Caller(_public_id(key)))


def _public_id(key: str) -> str:
    """The same at every start, and none that a stored key can have: those have no colon.

    Logs show it, and an operator's key may be a word: so trying words with it is slow.
    """
    return f"own:{scrypt(key.encode('ascii'), salt=b'octavo key id', n=2**14, r=8, p=1, dklen=6).hex()}"


def _completed(limits: KeyLimits, defaults: KeyLimits) -> KeyLimits:
    return KeyLimits(
        requests=defaults.requests if limits.requests is None else limits.requests,
        tokens=defaults.tokens if limits.tokens is None else limits.tokens,
        concurrent=defaults.concurrent if limits.concurrent is None else limits.concurrent,
    )
