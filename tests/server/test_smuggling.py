"""Messages that two programs could read in two ways: one refusal or one answer, and never two."""

import json
from collections.abc import Iterator

import pytest

from .raw import GET, Served, post, post_head, served, status, statuses

SMUGGLED = b"GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n"
CHUNKED = b"transfer-encoding: chunked"
LENGTH = b"content-length: %d" % len(SMUGGLED)

REFUSED = {
    "content-length and chunked": post_head(LENGTH, CHUNKED) + b"0\r\n\r\n",
    "chunked and content-length": post_head(CHUNKED, b"content-length: 4") + b"0\r\n\r\n",
    "chunked twice": post_head(CHUNKED, CHUNKED) + b"0\r\n\r\n",
    "chunked twice in a list": post_head(b"transfer-encoding: chunked, chunked") + b"0\r\n\r\n",
    "chunked and another coding": post_head(b"transfer-encoding: gzip, chunked") + b"0\r\n\r\n",
    "no coding": post_head(b"transfer-encoding: identity"),
    "an unknown coding": post_head(b"transfer-encoding: xchunked") + b"0\r\n\r\n",
    "a coding behind a control character": post_head(b"transfer-encoding: \x0bchunked") + b"0\r\n\r\n",
    "chunked in HTTP/1.0": post_head(CHUNKED).replace(b"1.1", b"1.0") + b"0\r\n\r\n",
    "two lengths": post_head(b"content-length: 0", LENGTH),
    "the same length twice": post_head(b"content-length: 0", b"content-length: 0"),
    "a list of lengths": post_head(b"content-length: 0, 0"),
    "a hexadecimal length": post_head(b"content-length: 0x0"),
    "a length with a sign": post_head(b"content-length: +0"),
    "a negative length": post_head(b"content-length: -1"),
    "a length in other digits": post_head(b"content-length: \xb2"),
    "a length with a point": post_head(b"content-length: 1.5"),
    "an empty length": post_head(b"content-length:"),
    "a length that is too large for any body": post_head(b"content-length: " + b"9" * 30),
    "a space before the colon": post_head(b"content-length : 4"),
    "a header without a colon": post_head(b"content-length"),
    "a header without a name": post_head(b": x"),
    "a folded header": post_head(b"x: a", b" content-length: 4"),
    "a header before the first one": b"GET / HTTP/1.1\r\n host: x\r\n\r\n",
    "bare line feeds": GET.replace(b"\r\n", b"\n"),
    "a bare line feed in a header": post_head(b"x: a\ncontent-length: 4"),
    "a bare carriage return in a header": post_head(b"x: a\rcontent-length: 4"),
    "NUL in a value": post_head(b"x: a\0b"),
    "NUL in a name": post_head(b"x\0: a"),
    "NUL in the path": b"GET /\0 HTTP/1.1\r\nhost: x\r\n\r\n",
    "a space in the path": b"GET /a b HTTP/1.1\r\nhost: x\r\n\r\n",
    "an unknown method": b"FETCH / HTTP/1.1\r\nhost: x\r\n\r\n",
    "a method in lower case": b"get / HTTP/1.1\r\nhost: x\r\n\r\n",
    "two spaces in the request line": b"GET  / HTTP/1.1\r\nhost: x\r\n\r\n",
    "another protocol": b"DESCRIBE / RTSP/1.0\r\nhost: x\r\n\r\n",
    "a URL of another host": b"GET http://evil.example/health HTTP/1.1\r\nhost: x\r\n\r\n",
    "a URL of another port": b"GET http://x:1/health HTTP/1.1\r\nhost: x\r\n\r\n",
    "a line feed before the request": b"\n" + GET,
    "a carriage return before the request": b"\r" + GET,
    "an unknown version": b"GET / HTTP/1.2\r\nhost: x\r\n\r\n",
    "HTTP/0.9": b"GET / HTTP/0.9\r\nhost: x\r\n\r\n",
    "HTTP/2 in clear text": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n",
    "a tunnel": b"CONNECT x:80 HTTP/1.1\r\nhost: x\r\n\r\n",
    "the beginning of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "a chunk size with 0x": post_head(CHUNKED) + b"0x1\r\na\r\n0\r\n\r\n",
    "a negative chunk size": post_head(CHUNKED) + b"-1\r\na\r\n0\r\n\r\n",
    "a chunk size with a space": post_head(CHUNKED) + b"1 \r\na\r\n0\r\n\r\n",
    "no chunk size": post_head(CHUNKED) + b"\r\n\r\n",
    "a chunk size that overflows": post_head(CHUNKED) + b"1" + b"0" * 16 + b"\r\n",
    "a chunk size line with a bare line feed": post_head(CHUNKED) + b"1\na\r\n0\r\n\r\n",
    "a chunk extension with a bare line feed": post_head(CHUNKED) + b"1;x\n\r\na\r\n0\r\n\r\n",
    "a chunk extension with a bare carriage return": post_head(CHUNKED) + b"1;x\rx\r\na\r\n0\r\n\r\n",
    "a chunk extension without end": post_head(CHUNKED) + b"1;" + b"x" * 300,
    "a chunk that is longer than its size": post_head(CHUNKED) + b"1\r\nabc\r\n0\r\n\r\n",
    "a chunk that ends with a line feed": post_head(CHUNKED) + b"1\r\na\n0\r\n\r\n",
    "trailers with a bare line feed": post_head(CHUNKED) + b"0\r\nx: y\n\r\n\r\n",
}


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served() as server:
        yield server


@pytest.mark.parametrize("message", REFUSED.values(), ids=REFUSED)
def test_an_ambiguous_message_gets_one_refusal_and_what_follows_none(server: Served, message: bytes) -> None:
    answer = server.exchange(message + SMUGGLED)

    assert statuses(answer) == [400]
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"connection: close" in head
    error = json.loads(body)
    assert error["code"] == error["error"]["code"] == "malformed_message"
    assert not [scope for scope in server.app.scopes if scope["path"] == "/smuggled"]


@pytest.mark.parametrize("message", REFUSED.values(), ids=REFUSED)
def test_it_is_refused_as_well_when_it_comes_byte_by_byte(server: Served, message: bytes) -> None:
    answer = server.exchange(*(bytes([byte]) for byte in message))

    assert statuses(answer) == [400]


@pytest.mark.parametrize("line", [b"CONNECT x:80", b"GET http://"])
def test_a_request_for_no_path_is_told_so(server: Served, line: bytes) -> None:
    assert b"must be for a path" in server.exchange(line + b" HTTP/1.1\r\nhost: x\r\n\r\n")


def test_a_request_that_would_like_another_protocol_keeps_its_body(server: Served) -> None:
    wishes = (b"connection: Upgrade, HTTP2-Settings", b"upgrade: h2c", b"http2-settings: AAMAAABkAARAAAAAAAIAAAAA")
    with server.connect() as connection:
        connection.sendall(post(SMUGGLED, *wishes) + GET.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
        answer = b""
        while data := connection.recv(65536):
            answer += data

    assert statuses(answer) == [200, 200]
    assert b"%d bytes" % len(SMUGGLED) in answer


def test_trailers_are_no_headers(server: Served) -> None:
    body = b"4\r\nbody\r\n0\r\nauthorization: Bearer stolen\r\nhost: y\r\n\r\n"
    answer = server.exchange(post_head(CHUNKED, b"connection: close", path=b"/trailers") + body)

    assert status(answer) == 200
    [scope] = [scope for scope in server.app.scopes if scope["path"] == "/trailers"]
    assert [name for name, _ in scope["headers"]] == [b"host", b"transfer-encoding", b"connection"]


def test_empty_lines_between_requests_are_nothing(server: Served) -> None:
    last = GET.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
    answer = server.exchange(b"\r\n" + post(b"abc") + b"\r\n\r\n", last)

    assert statuses(answer) == [200, 200]
