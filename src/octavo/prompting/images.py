"""Files of pictures as images of a conversation."""

from octavo.core.images import Image
from octavo.core.pictures import picture_size
from octavo.errors import ImageRefused

MAX_SIDE_RATIO = 200
"""Models see little more than a line in pictures beyond it; the preprocessor of Qwen-VL refuses these, too."""


def checked_image(data: bytes, *, is_coarse: bool, max_size: int, max_pixels: int) -> Image:
    """The file's picture, if its format is read and its size and pixels are allowed; none of the pixels is decoded.

    No side may be more than MAX_SIDE_RATIO times the other. max_size: bytes. Raises ImageRefused.
    """
    if len(data) > max_size:
        raise image_too_large(max_size)
    width, height = picture_size(data)
    if width * height > max_pixels:
        message = f"The image has {width} x {height} pixels; at most {max_pixels} are allowed."
        raise ImageRefused(message, param="messages")
    if max(width, height) > MAX_SIDE_RATIO * min(width, height):
        message = f"The image has {width} x {height} pixels; a side may be at most {MAX_SIDE_RATIO} times the other."
        raise ImageRefused(message, param="messages")
    return Image.of(data, is_coarse=is_coarse)


def image_too_large(max_size: int) -> ImageRefused:
    """The error for a file of more bytes, which need not all be there to know that."""
    return ImageRefused(f"The image's file is too large; at most {max_size} bytes are allowed.", param="messages")
