"""From settings to who may ask."""

import re
import socket
from pathlib import Path

import pytest

from octavo.cli.access import allowed_hosts, allowed_origins, build_keyring
from octavo.config import Settings
from octavo.core.caller import KeyLimits
from octavo.errors import ConfigError, Unauthenticated
from octavo.store.key_file import KeyFile

from .test_keys import create


def test_without_keys_anybody_may_ask_by_the_machines_own_names() -> None:
    assert build_keyring(Settings()).is_open
    hosts = allowed_hosts(Settings(allow_hosts=("octavo.example",)))

    assert hosts.allow(socket.gethostname().lower())
    assert hosts.allow("octavo.example")
    assert not hosts.allow("evil.example")


def test_with_keys_any_name_will_do_unless_names_are_listed() -> None:
    assert allowed_hosts(Settings(api_key=("k",))).allow("any.example")
    assert not allowed_hosts(Settings(api_key=("k",), allow_hosts=("octavo.example",))).allow("any.example")


async def test_keys_of_the_operator_and_of_the_file_are_known_with_their_limits(tmp_path: Path) -> None:
    secret = create("ann", "--tokens", "7", folder=tmp_path)
    keyring = build_keyring(
        Settings(api_key=("k1", "k2"), keys_file=tmp_path / "keys.json", key_requests=5, key_tokens=6, key_concurrent=2)
    )
    [stored] = KeyFile(tmp_path / "keys.json").read()

    assert not keyring.is_open
    assert (await keyring.caller(secret)).key_id == stored.id
    assert (await keyring.caller(secret)).limits == KeyLimits(5, 7, 2)
    assert (await keyring.caller("k1")).limits == (await keyring.caller("k2")).limits == KeyLimits(5, 6, 2)
    with pytest.raises(Unauthenticated):
        await keyring.caller("k3")


def test_pages_may_ask_from_where_it_is_listed() -> None:
    origins = allowed_origins(Settings(allow_origins=("https://a.example",)))

    assert origins.allow("https://a.example")
    assert not origins.allow("https://b.example")
    assert not allowed_origins(Settings()).allow("https://a.example")


@pytest.mark.parametrize("entry", ["a.example:80", "https://a.example", ""])
def test_what_is_no_name_is_an_error_that_names_flag_and_entry(entry: str) -> None:
    with pytest.raises(ConfigError, match=f"^--allow-hosts {re.escape(repr(entry))} "):
        allowed_hosts(Settings(allow_hosts=("fine.example", entry)))


def test_what_is_no_origin_is_an_error_that_names_flag_and_entry() -> None:
    with pytest.raises(ConfigError, match=r"^--allow-origins 'a\.example' is not an origin"):
        allowed_origins(Settings(allow_origins=("a.example",)))


@pytest.mark.parametrize(("keys", "is_warned_about"), [(("x" * 16, "x" * 15), True), (("x" * 16,), False)])
def test_a_key_that_can_be_guessed_is_warned_about_and_not_shown(
    keys: tuple[str, ...], is_warned_about: bool, caplog: pytest.LogCaptureFixture
) -> None:
    build_keyring(Settings(api_key=keys))

    assert ("has fewer than 16 characters" in caplog.text) == is_warned_about
    assert "x" * 15 not in caplog.text
