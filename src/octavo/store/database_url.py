"""Where the database is, as users write it."""

import re
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from octavo.errors import ConfigError

_SCHEMES = {
    "sqlite": "sqlite+aiosqlite",
    "sqlite+aiosqlite": "sqlite+aiosqlite",
    "postgres": "postgresql+asyncpg",
    "postgresql": "postgresql+asyncpg",
    "postgresql+asyncpg": "postgresql+asyncpg",
}
_PACKAGES = {"aiosqlite": "aiosqlite", "asyncpg": "'octavo[postgres]'"}
_FORMS = "sqlite:///FILE or postgresql://USER@HOST/NAME"
_PARAMETERS = {"sqlite": set[str](), "postgresql": {"host", "port", "ssl", "prepared_statement_cache_size"}}
_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_MAX_PORT = 65535
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """url: with a driver that Octavo has. It holds a password, and so is not for messages."""

    url: URL

    @property
    def is_file(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    @property
    def file(self) -> Path:
        assert self.url.database is not None
        return Path(self.url.database)

    @property
    def digest(self) -> str:
        """The same for the same database, whoever asks it."""
        place = (
            self.url.get_backend_name(),
            self.url.host,
            self.url.port,
            self.url.database,
            self.url.query.get("host"),
        )
        return sha256(repr(place).encode()).hexdigest()[:12]


def read_database_url(text: str) -> DatabaseUrl:
    """Of sqlite:///FILE (with four slashes from the root) or postgresql://…, also with `sslmode`. Raises ConfigError.

    A relative file is one of the folder that Octavo runs in.
    """
    url = _parsed(text)
    _check_driver(url)
    return DatabaseUrl(_of_file(url) if url.get_backend_name() == "sqlite" else _of_server(url))


def _parsed(text: str) -> URL:
    scheme = text.partition("://")[0]
    if scheme not in _SCHEMES:
        shown = f"the scheme {scheme!r}" if _SCHEME.fullmatch(scheme) and scheme != text else "no scheme"
        raise ConfigError(f"The prompt log's database has {shown}; its URL is {_FORMS}.")
    try:
        return make_url(text).set(drivername=_SCHEMES[scheme])
    except (ArgumentError, ValueError):
        pass  # what they say may have the password in it
    raise ConfigError(f"The URL of the prompt log's database cannot be read; it is {_FORMS}.")


def _check_driver(url: URL) -> None:
    driver = url.get_driver_name()
    if find_spec(driver) is None:
        raise ConfigError(
            f"The prompt log's database needs {driver}, which is not installed: pip install {_PACKAGES[driver]}"
        )


def _of_file(url: URL) -> URL:
    if url.host or not url.database or url.database == ":memory:":
        raise ConfigError("The prompt log's SQLite database has to be a file: sqlite:///FILE, or sqlite:////FROM/ROOT.")
    _check_parameters(url)
    return url.set(database=str(Path(url.database).expanduser().absolute()))


def _of_server(url: URL) -> URL:
    if not url.database:
        raise ConfigError("The URL of the prompt log's PostgreSQL names no database: postgresql://USER@HOST/NAME.")
    if not 0 < (url.port or _MAX_PORT) <= _MAX_PORT:
        raise ConfigError(f"The URL of the prompt log's database has the port {url.port}; it is at most {_MAX_PORT}.")
    mode = url.query.get("sslmode")  # asyncpg has another name for it than everybody else
    renamed = url if mode is None else url.difference_update_query(["sslmode"]).update_query_dict({"ssl": mode})
    _check_parameters(renamed)
    return renamed


def _check_parameters(url: URL) -> None:
    if unknown := url.query.keys() - _PARAMETERS[url.get_backend_name()]:
        raise ConfigError(f"The URL of the prompt log's database has unknown parameters: {', '.join(sorted(unknown))}.")
    if url.query.get("ssl", "disable") not in _SSL_MODES:
        raise ConfigError(f"sslmode of the prompt log's database is none of {', '.join(_SSL_MODES)}.")
