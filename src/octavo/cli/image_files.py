"""Images as parts of a message."""

import os
from base64 import b64encode

from octavo.cli.conversation import ImagePart
from octavo.errors import ConfigError

MAX_BYTES = 10 * 2**20
"""Of a file. Servers allow no more, unless told to."""
_URL_SCHEMES = ("http:", "https:", "data:")
_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"BM": "image/bmp",
}


def image_part(file_or_url: str) -> ImagePart:
    """An `image_url` part of a message. Files are read now, and sent with the message; URLs are left to the server.

    Raises ConfigError for a file that cannot be read, is too large or is no image of a format that servers read.
    """
    is_url = file_or_url.lower().startswith(_URL_SCHEMES)
    return {"type": "image_url", "image_url": {"url": file_or_url if is_url else _data_url(file_or_url)}}


def _data_url(file: str) -> str:
    data = _read(file)
    if len(data) > MAX_BYTES:
        raise ConfigError(f"The image {file!r} has more than {MAX_BYTES // 2**20} MiB.")
    media_type = _media_type(data)
    if media_type is None:
        raise ConfigError(f"{file!r} is not an image; PNG, JPEG, WebP, GIF and BMP can be sent.")
    return f"data:{media_type};base64,{b64encode(data).decode()}"


def _read(file: str) -> bytes:
    """At most a byte more than is allowed: a file that never ends is too large, too."""
    try:
        with open(os.path.expanduser(file), "rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"The image {file!r} cannot be read: {error.strerror}.") from error


def _media_type(data: bytes) -> str | None:
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return next((name for signature, name in _SIGNATURES.items() if data.startswith(signature)), None)
