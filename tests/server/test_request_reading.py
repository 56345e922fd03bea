"""Heads and bodies out of bytes that come in pieces of any size."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.api.errors import HeadersTooLarge, MalformedMessage
from octavo.server.request_body import MAX_TRAILERS, Body, ChunkedBody, SizedBody, body_of
from octavo.server.request_head import MAX_FIELDS, HeadReader

HEAD = b"POST /path HTTP/1.1\r\nhost: x\r\nx-y: z\r\n\r\n"
NEXT = b"GET / HTTP/1.1\r\n"

chunks = st.lists(st.tuples(st.binary(min_size=1, max_size=40), st.sampled_from([b"", b";x", b';a="b"'])), max_size=8)
trailers = st.sampled_from([b"", b"x: y\r\n", b"x: y\r\nz: " + b"a" * 50 + b"\r\n"])
cuts = st.lists(st.integers(0, 600), max_size=30)


def pieces(data: bytes, places: Sequence[int]) -> list[bytes]:
    ends = sorted(place for place in places if place < len(data))
    return [data[start:end] for start, end in zip([0, *ends], [*ends, len(data)], strict=True)]


def chunked(parts: Sequence[tuple[bytes, bytes]], trailer: bytes) -> bytes:
    lines = b"".join(b"%x%s\r\n%s\r\n" % (len(data), extension, data) for data, extension in parts)
    return lines + b"0\r\n" + trailer + b"\r\n"


def taken(body: Body, parts: Sequence[bytes]) -> tuple[bytes, bytes]:
    """The body, and what is left behind it."""
    buffer, data = bytearray(), b""
    for part in parts:
        buffer += part
        if not body.is_complete:
            data += body.take(buffer)
    return data, bytes(buffer)


def heads_of(parts: Sequence[bytes]) -> list[bytes]:
    reader, buffer, heads = HeadReader(64 * 2**10), bytearray(), []
    for part in parts:
        buffer += part
        while (head := reader.take(buffer)) is not None:
            heads.append(head)
    return heads


@given(chunks, trailers, cuts)
def test_a_chunked_body_is_the_same_however_it_is_cut(
    parts: list[tuple[bytes, bytes]], trailer: bytes, places: list[int]
) -> None:
    body = ChunkedBody()

    data, rest = taken(body, pieces(chunked(parts, trailer) + NEXT, places))

    assert body.is_complete
    assert data == b"".join(data for data, _ in parts)
    assert rest == NEXT


@given(st.binary(max_size=300), cuts)
def test_a_sized_body_is_the_same_however_it_is_cut(data: bytes, places: list[int]) -> None:
    body = SizedBody(len(data))

    assert taken(body, pieces(data + NEXT, places)) == (data, NEXT)
    assert body.is_complete


@given(st.binary(max_size=60), cuts)
def test_bytes_that_are_no_chunks_are_refused_the_same_however_they_are_cut(data: bytes, places: list[int]) -> None:
    def outcome(parts: list[bytes]) -> object:
        try:
            return taken(ChunkedBody(), parts)
        except MalformedMessage:
            return "refused"

    assert outcome(pieces(data, places)) == outcome([data])


@given(st.integers(0, 3), cuts)
def test_a_head_is_the_same_however_it_is_cut(num_empty: int, places: list[int]) -> None:
    heads = heads_of(pieces(b"\r\n" * num_empty + HEAD + HEAD + NEXT, places))

    assert heads == [HEAD, HEAD]


@given(st.sampled_from([b"\n", b"\r", b"\r\r\n", b"\n\r"]), st.integers(1, 35), cuts)
def test_half_a_line_end_is_refused_however_it_is_cut(end: bytes, place: int, places: list[int]) -> None:
    data = b"GET / HTTP/1.1\r\nx: " + b"y" * place + end + b"z: z\r\n\r\n"

    with pytest.raises(MalformedMessage):
        heads_of(pieces(data, places))


def test_a_head_has_its_bounds_when_it_comes_byte_by_byte() -> None:
    data = b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * (MAX_FIELDS + 2)

    with pytest.raises(HeadersTooLarge, match="too many"):
        heads_of([bytes([byte]) for byte in data])


def test_trailers_have_a_bound() -> None:
    body, buffer = ChunkedBody(), bytearray(b"0\r\n" + b"x: y\r\n" * MAX_TRAILERS)
    with pytest.raises(HeadersTooLarge):
        body.take(buffer)


@pytest.mark.parametrize("name", [b"content-length", b"transfer-encoding"])
def test_a_header_that_says_nothing_about_a_length_is_refused(name: bytes) -> None:
    with pytest.raises(MalformedMessage):
        body_of([(name, b"")], "1.1")
