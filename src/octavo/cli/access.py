"""From settings to who may ask."""

import socket
from collections.abc import Iterator
from contextlib import suppress

from octavo.config import Settings, flag_of
from octavo.core.caller import KeyLimits
from octavo.errors import ConfigError
from octavo.service import AllowedHosts, AllowedOrigins, ClosedKeyring, Keyring, OpenKeyring, no_stored_keys
from octavo.store.key_file import KeyFile
from octavo.store.watched_keys import WatchedKeys

ANY_NAME = ("*",)


def build_keyring(settings: Settings) -> Keyring:
    """Raises ConfigError."""
    limits = KeyLimits(settings.key_requests, settings.key_tokens, settings.key_concurrent)
    if not settings.has_keys:
        return OpenKeyring(limits)
    stored = WatchedKeys(KeyFile(settings.keys_file)).current if settings.keys_file else no_stored_keys
    try:
        return ClosedKeyring(settings.api_key, stored, default_limits=limits)
    except ValueError as error:
        raise ConfigError(f"{flag_of('api_key')}: {error}") from error


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
