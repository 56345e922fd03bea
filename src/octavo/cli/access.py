"""From settings to who may ask. It imports little: a server finds out what is wrong before it starts its engine."""

import logging
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from octavo.config import Settings, flag_of
from octavo.core.browser_access import AllowedHosts, AllowedOrigins
from octavo.core.caller import KeyLimits
from octavo.core.keyring import ClosedKeyring, Keyring, OpenKeyring, no_stored_keys
from octavo.errors import ConfigError
from octavo.store.key_file import KeyFile
from octavo.store.watched_keys import WatchedKeys

log = logging.getLogger(__name__)

ANY_NAME = ("*",)
SAFE_LENGTH = 16
"""Characters of a key that nobody finds by trying, if they are random."""


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask, and by which names and from whose pages."""

    keyring: Keyring
    hosts: AllowedHosts
    origins: AllowedOrigins


def build_access(settings: Settings) -> Access:
    """Raises ConfigError."""
    return Access(build_keyring(settings), allowed_hosts(settings), allowed_origins(settings))


def build_keyring(settings: Settings) -> Keyring:
    """Raises ConfigError."""
    limits = KeyLimits(settings.key_requests, settings.key_tokens, settings.key_concurrent)
    if not settings.has_keys:
        return OpenKeyring(limits)
    if any(len(key) < SAFE_LENGTH for key in settings.api_key):
        log.warning(
            "A key of %s has fewer than %d characters: others may guess it. `openssl rand -hex 32` makes a better one.",
            flag_of("api_key"),
            SAFE_LENGTH,
        )
    stored = WatchedKeys(KeyFile(settings.keys_file)).current if settings.keys_file else no_stored_keys
    return ClosedKeyring(settings.api_key, stored, default_limits=limits)


def allowed_hosts(settings: Settings) -> AllowedHosts:
    """Where a key is needed, a page that has none gains nothing by a name. Raises ConfigError."""
    listed = settings.allow_hosts or (ANY_NAME if settings.has_keys else ())
    try:
        return AllowedHosts((*listed, *_own_name()))
    except ValueError as error:
        raise ConfigError(f"{flag_of('allow_hosts')} {error}.") from error


def allowed_origins(settings: Settings) -> AllowedOrigins:
    """Raises ConfigError."""
    try:
        return AllowedOrigins(settings.allow_origins)
    except ValueError as error:
        raise ConfigError(f"{flag_of('allow_origins')} {error}.") from error


def _own_name() -> Iterator[str]:
    """The machine's, unless it has one that no URL can have."""
    name = socket.gethostname()
    with suppress(ValueError):
        AllowedHosts([name])
        yield name
