"""By which names browsers may call, and whose pages may let them."""

import re

import pytest

from octavo.core.browser_access import AllowedHosts, AllowedOrigins, called_host, normal_origin


@pytest.mark.parametrize(
    ("header", "is_fine"),
    [
        *((name, True) for name in ("127.0.0.1", "127.0.0.1:8080", "10.1.2.3", "[::1]", "[fe80::1]:8080")),
        *((name, True) for name in ("localhost", "LOCALHOST:80", "localhost.", "localhost:", "a.b.localhost:1")),
        *((name, True) for name in ("octavo.example", "Octavo.Example:8080", "octavo.example.")),
        *((name, False) for name in ("evil.example", "localhost.evil.example", "octavo.example.evil.example")),
        *((name, False) for name in ("notlocalhost", "sub.octavo.example", "127.0.0.1.evil.example")),
    ],
)
def test_addresses_this_machine_and_listed_names_may_be_called(header: str, is_fine: bool) -> None:
    assert AllowedHosts(["octavo.example"]).allow(called_host(header)) == is_fine


def test_a_star_is_any_name() -> None:
    assert AllowedHosts(["*"]).allow("evil.example")


@pytest.mark.parametrize(
    "header",
    [
        *("", " ", ":80", "a:b", "a:80:80", "a:999999", "a:0", "a b", "user@localhost", "localhost/", "localhost?"),
        *("http://localhost", "[::1", "::1", "[::1%25eth0]", "0x7f.1", "127.1", "2130706433", "a..b", "-", "*", "a,b"),
    ],
)
def test_what_names_no_host_is_refused(header: str) -> None:
    with pytest.raises(ValueError, match=r"^(is|has) "):
        called_host(header)


@pytest.mark.parametrize("entry", ["http://a.example", "a.example:80", "*.a.example", "", "a b"])
def test_a_listed_name_that_is_none_is_named(entry: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(repr(entry))} "):
        AllowedHosts(["fine.example", entry])


@pytest.mark.parametrize(
    ("origin", "is_fine"),
    [
        ("https://a.example", True),
        ("https://a.example:443", True),
        ("http://a.example", False),
        ("https://a.example:8443", False),
        ("https://b.a.example", False),
        ("https://a.example.evil.example", False),
        ("https://a.example/", False),
        ("https://a.example#x", False),
        ("https://a.example?", False),
        ("https://a.example/page", False),
        ("http://localhost:3000", True),
        ("http://localhost:3001", False),
        ("app://page", True),
        ("App://page", True),
        ("app://other", False),
        ("null", False),
        ("", False),
        ("https://xn--bcher-kva.example", True),
    ],
)
def test_only_listed_origins_may_ask(origin: str, is_fine: bool) -> None:
    listed = AllowedOrigins(["https://a.example", "http://LOCALHOST:3000", "App://page", "https://bücher.example"])

    assert listed.allow(origin) == is_fine
    assert not AllowedOrigins().allow(origin)
    assert AllowedOrigins(["*"]).allow(origin)


@pytest.mark.parametrize(
    "entry", ["null", "a.example", "https://a.example/x", "https://", "https://u@a.example", "", "https://a.example/"]
)
def test_a_listed_origin_that_is_none_is_named(entry: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(repr(entry))} "):
        AllowedOrigins([entry])


def test_an_origin_is_written_as_browsers_do() -> None:
    assert normal_origin("HTTP://[0:0::1]:80") == "http://[::1]"
