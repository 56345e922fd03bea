"""A key in the file of keys."""

from datetime import UTC, datetime
from math import inf
from typing import Annotated

import msgspec
from msgspec import Meta

from octavo.core.api_key import ApiKey
from octavo.core.caller import MAX_LIMIT, Caller, KeyLimits, Scope

Moment = Annotated[datetime, Meta(tz=True)]
Limit = Annotated[int, Meta(ge=1, le=MAX_LIMIT)]


class StoredKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything but the key itself.

    id: public and unique. name: for people. sha256: of the key, in hexadecimal digits. expires, revoked: None is never.
    requests, tokens, concurrent: as in KeyLimits; None is what the server gives every key.
    A field that is not known is an error: it might be there to restrict the key.
    """

    id: Annotated[str, Meta(pattern="^[A-Za-z0-9._-]{1,64}\\Z")]
    name: str
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}\\Z")]
    scopes: Annotated[tuple[Scope, ...], Meta(min_length=1)]
    created: Moment
    expires: Moment | None = None
    revoked: Moment | None = None
    requests: Limit | None = None
    tokens: Limit | None = None
    concurrent: Limit | None = None

    @property
    def state(self) -> str:
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= datetime.now(UTC) else "valid"

    def to_key(self) -> ApiKey:
        limits = KeyLimits(self.requests, self.tokens, self.concurrent)
        expires = inf if self.expires is None else self.expires.timestamp()
        return ApiKey(bytes.fromhex(self.sha256), Caller(self.id, frozenset(self.scopes), limits), expires)
