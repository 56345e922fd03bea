"""URLs of databases as users write them."""

import sys
from pathlib import Path

import pytest

from octavo.errors import ConfigError
from octavo.store.database_url import read_database_url

PASSWORD = "s3cret"
POSTGRES = ("postgresql", "asyncpg")


def test_a_file_is_relative_to_the_folder_or_from_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ann")

    assert read_database_url("sqlite:///log.db").file == tmp_path / "log.db"
    assert read_database_url("sqlite:////var/log.db").file == Path("/var/log.db")
    assert read_database_url("sqlite:///~/log.db").file == Path("/home/ann/log.db")
    assert read_database_url("sqlite+aiosqlite:////var/log.db").file == Path("/var/log.db")


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg"])
def test_all_names_of_postgresql_are_known(scheme: str) -> None:
    url = read_database_url(f"{scheme}://ann:{PASSWORD}@host:5433/log?sslmode=require")

    assert (url.kind, url.driver, url.username, url.password, url.host) == (*POSTGRES, "ann", PASSWORD, "host")
    assert (url.port, url.database, dict(url.query)) == (5433, "log", {"ssl": "require"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"mysql://ann:{PASSWORD}@host/log", "'mysql'"),
        (f"postgresql+psycopg2://ann:{PASSWORD}@host/log", "'postgresql+psycopg2'"),
        (f"ann:{PASSWORD}@host/log", "no scheme"),
        (f"ann:{PASSWORD}://host/log", "no scheme"),
        ("log.db", "no scheme"),
        ("sqlite://", "has to be a file"),
        ("sqlite:///:memory:", "has to be a file"),
        ("sqlite:///log.db?mode=ro", "unknown parameters: mode"),
        (f"postgresql://ann:{PASSWORD}@host", "names no database"),
        (f"postgresql://ann:{PASSWORD}@host:port/log", "cannot be read"),
        (f"postgresql://ann:{PASSWORD}@host:70000/log", "at most 65535"),
        (f"postgresql://ann:{PASSWORD}@host/log?sslmode=maybe", "none of disable"),
        (f"postgresql://ann:{PASSWORD}@host/log?connect_timeout=1", "unknown parameters: connect_timeout"),
    ],
)
def test_a_bad_url_is_explained_without_its_password(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_database_url(text)

    assert said in refused.value.message
    assert PASSWORD not in refused.value.message


def test_a_driver_that_is_not_installed_is_named_with_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)

    with pytest.raises(ConfigError, match=r"asyncpg.*pip install 'octavo\[postgres\]'"):
        read_database_url("postgresql://host/log")


def test_the_same_database_has_the_same_digest_for_everybody() -> None:
    one = read_database_url(f"postgres://ann:{PASSWORD}@host/log").digest

    assert read_database_url("postgresql://bob@host/log?sslmode=require").digest == one
    assert read_database_url("postgresql://HOST:5432/log").digest == one
    assert read_database_url("postgresql:///log?host=host&port=5432").digest == one
    for other in ("postgresql://host/other", "postgresql://host:5433/log", "postgresql://host/log?port=5433"):
        assert read_database_url(other).digest != one


def test_names_and_passwords_may_be_escaped_and_an_address_may_be_in_brackets() -> None:
    url = read_database_url("postgresql://a%40b:p%3Aq%2F@[::1]:5433/log")

    assert (url.username, url.password, url.host, url.port, url.database) == ("a@b", "p:q/", "::1", 5433, "log")
    assert "p:q" not in repr(url)
