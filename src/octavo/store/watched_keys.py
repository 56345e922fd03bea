"""The keys of a file that may change while a server runs."""

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from octavo.core.api_key import ApiKey
from octavo.errors import ConfigError
from octavo.store.key_file import KeyFile

log = logging.getLogger(__name__)

MAX_AGE = 1.0
"""Seconds after which it is looked again whether the file has changed: so long a revoked key may still be accepted."""
MAX_LOOK = 5.0
"""Seconds that a look may take."""


@dataclass(frozen=True, slots=True)
class _Sight:
    """What was found. fault: why there are no keys, else empty."""

    state: object
    keys: Mapping[bytes, ApiKey] = field(default_factory=dict)
    fault: str = ""


class WatchedKeys:
    """A file that can no longer be read has no keys: a key that cannot be looked up might be revoked.

    It is looked at in a thread, and whoever asks then waits, so that nobody is told what was true long ago.
    """

    def __init__(self, file: KeyFile, *, max_age: float = MAX_AGE, max_look: float = MAX_LOOK) -> None:
        """Raises ConfigError."""
        self._file = file
        self._max_age = max_age
        self._max_look = max_look
        self._looked = time.monotonic()
        self._sight = _read(file)
        self._look: asyncio.Task[_Sight] | None = None

    async def current(self) -> Mapping[bytes, ApiKey]:
        """By digest: those that are not revoked, as they are now."""
        if time.monotonic() - self._looked >= self._max_age:
            await self._renew()
        return self._sight.keys

    async def _renew(self) -> None:
        """One look at a time, however many wait for it."""
        if self._look is None:
            self._begun = time.monotonic()
            self._look = asyncio.create_task(asyncio.to_thread(_seen_again, self._file, self._sight))
            self._look.add_done_callback(self._end_look)
        look = self._look
        await asyncio.wait({look}, timeout=max(0.0, self._begun + self._max_look - time.monotonic()))
        if not look.done():
            self._take(_Sight(None, fault=f"Reading it takes more than {self._max_look:g} seconds."))

    def _end_look(self, look: asyncio.Task[_Sight]) -> None:
        self._look = None
        if not look.cancelled():
            self._looked = self._begun
            self._take(look.result())

    def _take(self, sight: _Sight) -> None:
        """A fault is told once, not at every look."""
        if sight.fault and not self._sight.fault:
            log.error("None of the keys in the file is accepted until it can be read again: %s", sight.fault)
        elif self._sight.fault and not sight.fault:
            log.warning("The file of keys can be read again.")
        self._sight = sight


def _seen_again(file: KeyFile, before: _Sight) -> _Sight:
    if file.state() == before.state and not before.fault:
        return before
    try:
        return _read(file)
    except ConfigError as error:
        return _Sight(None, fault=error.message)


def _read(file: KeyFile) -> _Sight:
    """Raises ConfigError."""
    state = file.state()  # from before the reading: a change that comes in between is seen at the next look
    keys = [key.to_key() for key in file.read() if key.revoked is None]
    return _Sight(state, {key.digest: key for key in keys})
