"""URLs of images, and texts that programs read in different ways."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.http_url import MAX_URL, HttpUrl


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://example.com", HttpUrl("https", "example.com", 443, "/")),
        ("HTTP://Example.Com:80/A%20b", HttpUrl("http", "example.com", 80, "/A%20b")),
        ("https://example.com?x=1#y", HttpUrl("https", "example.com", 443, "/?x=1")),
        ("https://example.com/a?b=c/d?e&f=%2F#g?h", HttpUrl("https", "example.com", 443, "/a?b=c/d?e&f=%2F")),
        ("https://example.com:8443/bücher?ü", HttpUrl("https", "example.com", 8443, "/b%C3%BCcher?%C3%BC")),
        ("http://[::1]:9000/x", HttpUrl("http", "::1", 9000, "/x")),
        ("https://example.com/a|b^c`{d}", HttpUrl("https", "example.com", 443, "/a|b^c`{d}")),
        ("https://example.com/../../etc/passwd", HttpUrl("https", "example.com", 443, "/../../etc/passwd")),
    ],
)
def test_a_url_is_read_in_parts(text: str, url: HttpUrl) -> None:
    assert HttpUrl.parse(text) == url


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "file:///etc/passwd", "ftp://example.com/x", "gopher://example.com:70/x", "javascript:alert(1)"),
        *("//example.com/x", "https:/example.com/x", "https:example.com", "https:///x", "https://", "blob:https://a/b"),
        *("https://user@example.com/", "https://user:secret@example.com/", "https://@example.com/", "https://a@b@c/"),
        *("https://example.com\\@127.0.0.1/", "https://127.0.0.1\\.example.com/", "https:\\\\example.com\\x"),
        *(" https://example.com/", "https://example.com/ ", "https://exa mple.com", "https://example.com/\r\nHost: a"),
        *("https://example.com\t/", "https://example\x00.com/", "https://example.com/\x7f", "ht\ntps://example.com"),
        *(
            "https://example.com:port/",
            "https://example.com:/",
            "https://example.com:-1/",
            "https://example.com:99999/",
        ),
        *("https://exam%70le.com/", "https://%31%32%37.0.0.1/", "https://[::1/", "https://::1/", "https://[::1]x/"),
        *(
            "https://[fe80::1%25eth0]/",
            "https://[v1.x]/",
            "https://127.1/",
            "https://0x7f.0.0.1/",
            "https://017700000001",
        ),
        *("https://2130706433/", "https://0x7f000001/", "https://127.0.0.1.1/", "https://0177.0.0.1/", "https://0/"),
        *("https://1.2.3.256/", "https://01.02.03.04/", "https://a..b/", "https://" + "a" * 300 + ".com"),
        "https://example.com/" + "a" * MAX_URL,
    ],
)
def test_what_could_be_read_in_two_ways_is_no_url(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(is|has|must) "):
        HttpUrl.parse(text)


@pytest.mark.parametrize("text", ["https://example.com/\ud800", "https://example.com/?\udfff", "https://\ud800.com/"])
def test_half_a_surrogate_pair_is_told(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(is|has) ") as error:
        HttpUrl.parse(text)
    assert "codec" not in str(error.value)


@given(st.text() | st.text().map("https://{}".format) | st.text(alphabet="htps:/.@[]%\\?#a0-").map("http://{}".format))
def test_a_url_written_out_is_the_same_url(text: str) -> None:
    try:
        url = HttpUrl.parse(text)
    except ValueError:
        return
    assert HttpUrl.parse(str(url)) == url
    assert str(url).isascii()
