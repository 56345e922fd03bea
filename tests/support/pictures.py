"""Small pictures as files, and what a fake engine makes of them."""

from base64 import b64encode
from io import BytesIO
from typing import Any

from PIL import Image as Pillow

from octavo.core.images import Image, ImageSpan, ImageTokens


def saved(picture: Pillow.Image, format: str, **options: Any) -> bytes:
    file = BytesIO()
    picture.save(file, format, **options)
    return file.getvalue()


def plain(color: str, format: str = "PNG", size: tuple[int, int] = (8, 8)) -> bytes:
    """A file of one colour."""
    return saved(Pillow.new("RGB", size, color), format)


def data_url(data: bytes, type: str = "image/png") -> str:
    return f"data:{type};base64,{b64encode(data).decode()}"


def image_part(url: str, **fields: Any) -> dict[str, Any]:
    """A part of a message."""
    return {"type": "image_url", "image_url": {"url": url, **fields}}


def text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def image_tokens(image: Image, num_tokens: int = 4) -> ImageTokens:
    """One part, whose tokens' ids are made of the digest as an engine makes them."""
    first = -(1 + int(image.digest[:6], 16) * num_tokens)
    tokens = tuple(range(first, first - num_tokens, -1))
    return ImageTokens(tokens, (ImageSpan(image.digest, 0, 0, num_tokens),))
