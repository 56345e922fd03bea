"""Images that are in the request itself (RFC 2397)."""

import re
from binascii import Error, a2b_base64

from octavo.errors import ImageRefused
from octavo.prompting import image_too_large

_MAX_HEADER = 256
_MAX_BROKEN = 2
"""How many times as long as without it a text may be with white space; programs that break lines write little of it."""

_WHITE_SPACE = b" \t\n\r\f\v"
_HEADER = re.compile(r"image/[\w.+-]+(;[\w.+-]+=[\w.+-]+)*;base64", re.ASCII | re.IGNORECASE)


def is_data_url(url: str) -> bool:
    return url[:5].lower() == "data:"


def data_of(url: str, *, max_size: int) -> bytes:
    """The bytes of a `data:image/...;base64,` URL. Padding may be left out and lines broken, as programs do that.

    The bytes may be of another format than the URL says: what they are is looked up in them.
    Raises ImageRefused, for more than max_size bytes before any is decoded.
    """
    if len(url) > _MAX_HEADER + _MAX_BROKEN * _encoded_size(max_size):
        raise image_too_large(max_size)
    header, comma, text = url[5:].partition(",")
    if not comma or len(header) > _MAX_HEADER or not _HEADER.fullmatch(header):
        message = "A data: URL of an image must begin with data:image/TYPE;base64, where TYPE is as in png."
        raise ImageRefused(message, param="messages")
    try:
        encoded = text.encode("ascii").translate(None, _WHITE_SPACE).rstrip(b"=")
        if len(encoded) * 3 // 4 > max_size:
            raise image_too_large(max_size)
        return a2b_base64(encoded + b"=" * (-len(encoded) % 4), strict_mode=True)
    except (Error, UnicodeEncodeError):
        raise ImageRefused("The data: URL of an image is not base64.", param="messages") from None


def _encoded_size(size: int) -> int:
    """Of base64 with padding."""
    return (size + 2) // 3 * 4
