"""The list of hosts from which images may be fetched."""

import re

import pytest

from octavo.core.hosts import normal_host
from octavo.service import ImageHosts


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ("example.com", ("https", "example.com", 443)),
        ("example.com", ("http", "example.com", 80)),
        ("EXAMPLE.com.", ("https", "example.com", 443)),
        ("example.com:8443", ("https", "example.com", 8443)),
        ("example.com:443", ("http", "example.com", 443)),
        ("*.example.com", ("https", "a.example.com", 443)),
        ("*.example.com", ("https", "a.b.example.com", 443)),
        ("*.example.com:81", ("http", "a.example.com", 81)),
        ("*", ("https", "anything.org", 443)),
        ("*", ("http", "1.1.1.1", 80)),
        ("*:8080", ("http", "anything.org", 8080)),
        ("bücher.example", ("https", "xn--bcher-kva.example", 443)),
        ("*.bücher.example", ("https", "a.xn--bcher-kva.example", 443)),
        ("127.0.0.1:9000", ("http", "127.0.0.1", 9000)),
        ("[::1]:9000", ("http", "::1", 9000)),
        ("[0:0:0:0:0:0:0:1]", ("https", "::1", 443)),
    ],
)
def test_an_entry_allows_a_host(entry: str, url: tuple[str, str, int]) -> None:
    assert ImageHosts([entry]).allow(*url)
    assert ImageHosts(["other.org", entry]).allow(*url)


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ("example.com", ("https", "example.com", 80)),
        ("example.com", ("http", "example.com", 443)),
        ("example.com", ("http", "example.com", 22)),
        ("example.com", ("https", "a.example.com", 443)),
        ("example.com", ("https", "example.com.evil.org", 443)),
        ("example.com", ("https", "badexample.com", 443)),
        ("example.com:8443", ("https", "example.com", 443)),
        ("*.example.com", ("https", "example.com", 443)),
        ("*.example.com", ("https", "badexample.com", 443)),
        ("*.example.com", ("https", "a.example.com", 8443)),
        ("*", ("http", "anything.org", 22)),
        ("127.0.0.1:9000", ("http", "127.0.0.1", 80)),
    ],
)
def test_an_entry_allows_nothing_else(entry: str, url: tuple[str, str, int]) -> None:
    assert not ImageHosts([entry]).allow(*url)


def test_nothing_is_allowed_without_entries() -> None:
    assert not ImageHosts().allow("https", "example.com", 443)


@pytest.mark.parametrize(
    ("entries", "is_any"),
    [
        (["localhost:9000"], True),
        (["*", "localhost:9000"], True),
        (["localhost:9001", "*:9000"], False),  # another port of this machine is another place
        (["*:9000"], False),
    ],
)
def test_only_an_entry_that_names_the_place_and_its_port_may_be_within_a_network(
    entries: list[str], is_any: bool
) -> None:
    assert ImageHosts(entries).allow("http", "localhost", 9000)
    assert ImageHosts(entries).allow_any_address("http", "localhost", 9000) is is_any


def test_a_name_is_never_at_a_private_address_even_if_it_is_listed() -> None:
    assert not ImageHosts(["internal.example"]).allow_any_address("https", "internal.example", 443)


@pytest.mark.parametrize(
    "entry",
    [
        *("", ":80", "example.com:", "example.com:0", "example.com:65536", "example.com:http", "https://example.com"),
        *("example.com/path", "user@example.com", "a b", "*example.com", "a.*.com", "*.", "**", "*.1.2.3.4", "*.*"),
        *("127.1", "0x7f000001", "2130706433", "0177.0.0.1", "1.2.3.4.5", "[::1", "::1", "[fe80::1%eth0]", "[*]"),
        *("-a.com", "a..com", "a" * 64 + ".com", "a.com\n"),
    ],
)
def test_what_is_no_entry_is_named(entry: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(repr(entry))} (is|has) "):
        ImageHosts(["example.com", entry])


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("Example.COM", "example.com"),
        ("example.com.", "example.com"),
        ("a_b.example", "a_b.example"),
        ("①②⑦.⓪.⓪.①", "127.0.0.1"),
        ("ｌｏｃａｌｈｏｓｔ", "localhost"),
        ("ﬁ.example", "fi.example"),
        ("example。com", "example.com"),
        ("[::FFFF:127.0.0.1]", "::ffff:7f00:1"),
    ],
)
def test_a_host_has_one_spelling(text: str, host: str) -> None:
    assert normal_host(text) == host
