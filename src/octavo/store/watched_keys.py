"""The keys of a file that may change while a server runs."""

import logging
import time
from collections.abc import Sequence

from octavo.core.api_key import ApiKey
from octavo.errors import ConfigError
from octavo.store.key_file import KeyFile

log = logging.getLogger(__name__)

MAX_AGE = 1.0
"""Seconds after which it is looked again whether the file has changed: so long a revoked key may still be accepted."""


class WatchedKeys:
    """A file that can no longer be read has no keys: a key that cannot be looked up might be revoked."""

    def __init__(self, file: KeyFile, *, max_age: float = MAX_AGE) -> None:
        """Raises ConfigError."""
        self._file = file
        self._max_age = max_age
        self._fault = ""
        # The state is from before the reading: a change that comes in between is seen at the next look.
        self._state = file.state()
        self._keys = self._read()
        self._looked = time.monotonic()

    def current(self) -> Sequence[ApiKey]:
        """Those that are not revoked, as they are now."""
        now = time.monotonic()
        if now - self._looked >= self._max_age:
            self._looked = now
            self._look()
        return self._keys

    def _look(self) -> None:
        state = self._file.state()
        if state == self._state and not self._fault:
            return
        self._state = state
        try:
            self._keys = self._read()
            self._tell("")
        except ConfigError as error:
            self._keys = ()
            self._tell(error.message)

    def _read(self) -> Sequence[ApiKey]:
        return tuple(key.to_key() for key in self._file.read() if key.revoked is None)

    def _tell(self, fault: str) -> None:
        """Once, not at every look."""
        if fault and not self._fault:
            log.error("None of the keys in the file is accepted until it can be read again: %s", fault)
        elif self._fault and not fault:
            log.warning("The file of keys can be read again.")
        self._fault = fault
