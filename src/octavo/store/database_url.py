"""Where the database is, as users write it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from octavo.errors import ConfigError

_DRIVERS = {
    "sqlite": ("sqlite", "aiosqlite"),
    "sqlite+aiosqlite": ("sqlite", "aiosqlite"),
    "postgres": ("postgresql", "asyncpg"),
    "postgresql": ("postgresql", "asyncpg"),
    "postgresql+asyncpg": ("postgresql", "asyncpg"),
}
_PACKAGES = {"aiosqlite": "aiosqlite", "asyncpg": "'octavo[postgres]'"}
_FORMS = "sqlite:///FILE or postgresql://USER@HOST/NAME"
_PARAMETERS = {"sqlite": set[str](), "postgresql": {"host", "port", "ssl", "prepared_statement_cache_size"}}
_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_MAX_PORT = 65535
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*", re.IGNORECASE)
_REST = re.compile(
    r"""
    (?: (?P<username> [^:/?]* ) (?: : (?P<password> [^@]* ) )? @ )?
    (?: \[ (?P<address> [^\]/?]+ ) \] | (?P<host> [^/:?]* ) )
    (?: : (?P<port> [0-9]* ) )?
    (?: / (?P<database> [^?]* ) )?
    (?: \? (?P<query> .* ) )?
    """,
    re.VERBOSE,
)
_NO_PLACE = ("ssl", "prepared_statement_cache_size")
"""Parameters that say how a database is asked, and not which."""
_DEFAULT_PORT = 5432


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """kind: sqlite or postgresql. It holds a password, and so is not for messages. Empty and None: not given."""

    kind: str
    driver: str
    username: str
    password: str = field(repr=False)
    host: str
    port: int | None
    database: str
    query: Mapping[str, str]

    @property
    def is_file(self) -> bool:
        return self.kind == "sqlite"

    @property
    def file(self) -> Path:
        return Path(self.database)

    @property
    def exists(self) -> bool:
        """False where there is not even a file. Raises OSError."""
        try:
            return not self.is_file or bool(self.file.stat())
        except FileNotFoundError:
            return False

    @property
    def digest(self) -> str:
        """The same for the same database, whoever asks it."""
        place = {name: value for name, value in self.query.items() if name not in _NO_PLACE}
        place = {"host": self.host.lower(), "port": str(self.port or _DEFAULT_PORT)} | place
        return sha256(repr((self.kind, self.database, sorted(place.items()))).encode()).hexdigest()[:12]


def read_database_url(text: str) -> DatabaseUrl:
    """Of sqlite:///FILE (with four slashes from the root) or postgresql://…, also with `sslmode`. Raises ConfigError.

    A relative file is one of the folder that Octavo runs in.
    """
    url = _parsed(text)
    _check_driver(url.driver)
    return _of_file(url) if url.is_file else _of_server(url)


def _parsed(text: str) -> DatabaseUrl:
    scheme, _, rest = text.partition("://")
    if scheme not in _DRIVERS:
        shown = f"the scheme {scheme!r}" if _SCHEME.fullmatch(scheme) and scheme != text else "no scheme"
        raise ConfigError(f"The prompt log's database has {shown}; its URL is {_FORMS}.")
    found = _REST.fullmatch(rest)
    if found is None:  # it is not shown, as it may have a password in it
        raise ConfigError(f"The URL of the prompt log's database cannot be read; it is {_FORMS}.")
    kind, driver = _DRIVERS[scheme]
    part = found.groupdict(default="")
    return DatabaseUrl(
        kind,
        driver,
        unquote(part["username"]),
        unquote(part["password"]),
        part["address"] or part["host"],
        int(part["port"]) if part["port"] else None,
        part["database"],
        dict(parse_qsl(part["query"], keep_blank_values=True)),
    )


def _check_driver(driver: str) -> None:
    if find_spec(driver) is None:
        raise ConfigError(
            f"The prompt log's database needs {driver}, which is not installed: pip install {_PACKAGES[driver]}"
        )


def _of_file(url: DatabaseUrl) -> DatabaseUrl:
    if url.host or not url.database or url.database == ":memory:":
        raise ConfigError("The prompt log's SQLite database has to be a file: sqlite:///FILE, or sqlite:////FROM/ROOT.")
    _check_parameters(url)
    return replace(url, database=str(Path(url.database).expanduser().absolute()))


def _of_server(url: DatabaseUrl) -> DatabaseUrl:
    if not url.database:
        raise ConfigError("The URL of the prompt log's PostgreSQL names no database: postgresql://USER@HOST/NAME.")
    if url.port is not None and not 0 < url.port <= _MAX_PORT:
        raise ConfigError(f"The URL of the prompt log's database has the port {url.port}; it is at most {_MAX_PORT}.")
    # asyncpg has another name for it than everybody else.
    renamed = replace(url, query={"ssl" if name == "sslmode" else name: value for name, value in url.query.items()})
    _check_parameters(renamed)
    return renamed


def _check_parameters(url: DatabaseUrl) -> None:
    if unknown := url.query.keys() - _PARAMETERS[url.kind]:
        raise ConfigError(f"The URL of the prompt log's database has unknown parameters: {', '.join(sorted(unknown))}.")
    if url.query.get("ssl", "disable") not in _SSL_MODES:
        raise ConfigError(f"sslmode of the prompt log's database is none of {', '.join(_SSL_MODES)}.")
