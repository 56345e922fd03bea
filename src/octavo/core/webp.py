"""Headers of WebP files (RFC 9649)."""

_CHUNK = 12
_PAYLOAD = 20
_KEY_FRAME = b"\x9d\x01\x2a"
_LOSSLESS = 0x2F


def webp_size(data: bytes) -> tuple[int, int]:
    """Width and height of a file's picture, or of its canvas where it has one.

    Raises ValueError where it does not begin as a WebP.
    """
    chunk, header = data[_CHUNK : _CHUNK + 4], data[_PAYLOAD : _PAYLOAD + 10]
    if data[8:_CHUNK] != b"WEBP" or len(header) < 10:
        raise ValueError("no file of WebP")
    if chunk == b"VP8 " and header[3:6] == _KEY_FRAME:
        return _number(header[6:8]) & 0x3FFF, _number(header[8:10]) & 0x3FFF
    if chunk == b"VP8L" and header[0] == _LOSSLESS:
        bits = _number(header[1:5])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if chunk == b"VP8X":
        return _number(header[4:7]) + 1, _number(header[7:10]) + 1
    raise ValueError("no picture behind the file's header")


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little")
