"""`octavo keys`: the keys of a server, in a file that it watches."""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from octavo.cli.table import table
from octavo.cli.terminal import write_aside, write_text
from octavo.config import Settings, flag_of
from octavo.core.api_key import digest_of, new_key
from octavo.core.caller import KeyLimits, Scope
from octavo.errors import ConfigError
from octavo.store.key_file import KeyFile
from octavo.store.stored_key import StoredKey

HEADINGS = ("id", "name", "scopes", "created", "expires", "state", "limits")
MIN_DAYS = 1 / (24 * 60)
MAX_DAYS = 36_500
MAX_NAME = 100


def create_key(settings: Settings, name: str, scopes: Sequence[Scope], days: float | None, limits: KeyLimits) -> None:
    """Print a new key, and nothing else, to standard output. days: until it expires. Raises ConfigError."""
    file, secret = KeyFile(_path(settings)), new_key()
    created = datetime.now(UTC).replace(microsecond=0)
    key = StoredKey(
        id=f"key-{secrets.token_hex(6)}",
        name=_checked(name),
        sha256=digest_of(secret).hex(),
        scopes=tuple(sorted(set(scopes or (Scope.GENERATE,)))),
        created=created,
        expires=None if days is None else created + _lifetime(days),
        requests=limits.requests,
        tokens=limits.tokens,
        concurrent=limits.concurrent,
    )
    file.add(key)
    _show(secret, file, key)
    write_aside(
        f"The key of {name}, {key.id}, for {', '.join(key.scopes)}. It is kept nowhere: this is the only time.\n"
    )


def list_keys(settings: Settings) -> None:
    """Print a table. Raises ConfigError."""
    keys = KeyFile(_path(settings)).read()
    write_text(table([HEADINGS, *map(_cells, keys)]) if keys else "There are no keys.\n")


def revoke_key(settings: Settings, id: str) -> None:
    """Raises ConfigError."""
    key = KeyFile(_path(settings)).revoke(id)
    write_text(f"Revoked {key.id}, the key of {key.name}.\n")


def _show(secret: str, file: KeyFile, key: StoredKey) -> None:
    """A key that nobody saw is good for nobody."""
    try:
        write_text(f"{secret}\n")
    except BaseException as error:
        file.revoke(key.id)
        if not isinstance(error, OSError):
            raise
        raise ConfigError(f"The key could not be shown ({error.strerror}), so {key.id} is revoked.") from error


def _path(settings: Settings) -> Path:
    if settings.keys_file is None:
        raise ConfigError(f"Say which file has the keys: {flag_of('keys_file')} FILE.")
    return settings.keys_file


def _checked(name: str) -> str:
    if not 1 <= len(name) <= MAX_NAME or not name.isprintable():
        raise ConfigError(f"NAME {name!r}: must be 1 to {MAX_NAME} printable characters.")
    return name


def _lifetime(days: float) -> timedelta:
    if not MIN_DAYS <= days <= MAX_DAYS:
        raise ConfigError(f"--expires '{days:g}': must be a minute at least, and at most {MAX_DAYS} days.")
    return timedelta(days=days)


def _cells(key: StoredKey) -> tuple[str, ...]:
    limits = {"requests": key.requests, "tokens": key.tokens, "concurrent": key.concurrent}
    return (
        key.id,
        key.name,
        ",".join(key.scopes),
        _shown(key.created),
        "never" if key.expires is None else _shown(key.expires),
        key.state,
        " ".join(f"{name}={limit}" for name, limit in limits.items() if limit is not None),
    )


def _shown(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%MZ")
