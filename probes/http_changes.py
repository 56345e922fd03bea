"""Changes to HTTP requests, as hypothesis puts them together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

Parts = tuple[bytes, ...]
"""Of a request, in their order: words, and what is between them."""

END = b"\r\n"
MAX_WIDTH = 8
"""Parts that are changed as one: a header and its line end have four."""
MAX_REPEATS = 2_000
MAX_BYTES = 200_000
LAST = -1
"""In place of a part's number: often the body."""
STRANGE = (
    *(
        b"",
        b"\0",
        b"\r",
        b"\n",
        END,
        END + END,
        b" ",
        b"\t",
        b":",
        b",",
        b";",
        b"\x7f",
        b"\x80\xff",
        b"\xc3\xa9",
        b"\xef\xbb\xbf",
    ),
    *(b"/", b"//", b"*", b"..", b"/../", b"%", b"%00", b"%2e%2e%2f", b"?", b"#", b"http://other/", b"[::1]:0"),
    *(b"0", b"-1", b"+1", b"0x10", b"1e9", b"1.0", b"9" * 18, b"9" * 19, b"9" * 400, b"f" * 15, b"F" * 17, b"1_0"),
    *(b"GET", b"HEAD", b"PRI", b"CONNECT", b"get", b"HTTP/1.0", b"HTTP/0.9", b"HTTP/2.0", b"HTTP/11.1", b"http/1.1"),
    *(
        b"chunked",
        b"gzip, chunked",
        b"identity",
        b"100-continue",
        b"close",
        b"upgrade",
        b"h2c",
        b"bytes=0-",
        b"Bearer x",
    ),
    *(b"content-length", b"transfer-encoding", b"host", b"connection", b"expect", b"upgrade", b"origin", b"cookie"),
    *(b"{", b"[" * 300, b'"', b"null", b"\\ud800", b"x" * 300, b"x" * 9_000, b"x" * 70_000),
)


def with_flipped_bit(part: bytes, place: int, _: bytes) -> bytes:
    return part[:place] + bytes(byte ^ 1 << place % 8 for byte in part[place : place + 1]) + part[place + 1 :]


def with_random_byte(part: bytes, place: int, strange: bytes) -> bytes:
    return part[:place] + strange[:1] + part[place + 1 :]


CHANGES: Mapping[str, Callable[[bytes, int, bytes], bytes]] = {
    "flip a bit": with_flipped_bit,
    "change a byte": with_random_byte,
    "insert": lambda part, place, strange: part[:place] + strange + part[place:],
    "replace": lambda part, place, strange: strange,
    "delete": lambda part, place, strange: b"",
    "cut": lambda part, place, strange: part[:place],
    "repeat": lambda part, place, strange: part * 2,
    "repeat often": lambda part, place, strange: (part * MAX_REPEATS)[:MAX_BYTES],
}
"""By their names: what becomes of a part, from a place in it on."""


@dataclass(frozen=True, slots=True)
class Change:
    """The numbers may be larger than what there is; they start over."""

    name: str
    start: int
    width: int
    place: int
    strange: bytes

    def apply(self, parts: Parts) -> Parts:
        start = self.start % len(parts)
        end = start + self.width
        chosen = b"".join(parts[start:end])
        changed = CHANGES[self.name](chosen, self.place % (len(chosen) + 1), self.strange)
        return (*parts[:start], changed[:MAX_BYTES], *parts[end:])


changes = st.builds(
    Change,
    st.sampled_from(sorted(CHANGES)),
    st.integers(0, 2**16) | st.just(LAST),
    st.integers(1, MAX_WIDTH) | st.just(1),
    st.integers(0, 2**16),
    st.sampled_from(STRANGE) | st.binary(min_size=1, max_size=8),
)
