"""Files of pictures as pixels."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from types import MappingProxyType

from PIL import Image as Pillow
from PIL.BmpImagePlugin import BmpImageFile
from PIL.ExifTags import Base as ExifTag
from PIL.GifImagePlugin import GifImageFile
from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.WebPImagePlugin import WebPImageFile

from octavo.core.images import Image
from octavo.core.webp import webp_size
from octavo.errors import ImageRefused

FORMATS = "PNG, JPEG, WebP, GIF and BMP"

_READERS: Mapping[bytes, type[ImageFile]] = MappingProxyType(
    {
        b"\x89PNG\r\n\x1a\n": PngImageFile,
        b"\xff\xd8\xff": JpegImageFile,
        b"RIFF": WebPImageFile,
        b"GIF8": GifImageFile,
        b"BM": BmpImageFile,
    }
)
"""By what the files begin with. Pillow knows many formats more, of which some are rarely looked at by anybody."""

_START_OF_SCAN = b"\xff\xda"
_MAX_SCANS = 100
"""Times that a JPEG may go over its pixels: programs write about ten, and a small file could ask for 100 000."""

_TURNS: Mapping[int, Pillow.Transpose] = MappingProxyType(
    {
        2: Pillow.Transpose.FLIP_LEFT_RIGHT,
        3: Pillow.Transpose.ROTATE_180,
        4: Pillow.Transpose.FLIP_TOP_BOTTOM,
        5: Pillow.Transpose.TRANSPOSE,
        6: Pillow.Transpose.ROTATE_270,
        7: Pillow.Transpose.TRANSVERSE,
        8: Pillow.Transpose.ROTATE_90,
    }
)
"""From pixels as stored to pixels as seen, by the orientation of EXIF 2.3, 4.6.4 A."""

_STRIP_PIXELS = 2**20

# What Pillow says of odd metadata holds parts of it, and would be a line of the log each time that a client sends some.
# Filters hold for the whole process: one set around each picture would be lost where two threads read pictures.
warnings.filterwarnings("ignore", module=r"PIL\.")


@dataclass(frozen=True, slots=True)
class PixelImage:
    """A picture without transparency. width, height: at least 1. rgb: three bytes a pixel, row by row from the top."""

    width: int
    height: int
    rgb: bytes


def picture_size(data: bytes) -> tuple[int, int]:
    """Width and height of a file's picture, as its header tells them; no pixel is decoded.

    Raises ImageRefused for what is none of FORMATS or has no readable header.
    """
    if _reader(data) is WebPImageFile:  # which starts its decoder as soon as it is opened
        with _refusing():
            return webp_size(data)
    return _opened(data).size


def decode_image(image: Image, *, coarse_side: int) -> PixelImage:
    """The pixels of a checked image, upright and on white where it is transparent; the first frame of an animation.

    coarse_side: pixels in which each side of a coarse image fits afterwards. Other images keep their size.
    Raises ImageRefused where the file is broken or ends too early.

    Takes about 7 bytes of memory a pixel for a while, for a progressive JPEG up to 10 and for a WebP 16.
    """
    if image.is_coarse:
        return _shrunk(_upright(_drafted(_opened(image.data), 2 * coarse_side)), coarse_side)
    return _upright(_opened(image.data))


def _reader(data: bytes) -> type[ImageFile]:
    reader = next((reader for start, reader in _READERS.items() if data.startswith(start)), None)
    if reader is None:
        raise ImageRefused(f"The image's format is not known; known are {FORMATS}.", param="messages")
    return reader


def _opened(data: bytes) -> ImageFile:
    reader = _reader(data)
    if reader is JpegImageFile and data.count(_START_OF_SCAN) > _MAX_SCANS:
        raise ImageRefused(f"The image has more than {_MAX_SCANS} scans.", param="messages")
    with _refusing():
        return reader(BytesIO(data))


@contextmanager
def _refusing() -> Iterator[None]:
    """Whatever a decoder raises means that it cannot read the file; there is no list of what they raise."""
    try:
        yield
    except Pillow.DecompressionBombError:
        raise ImageRefused("The image has too many pixels.", param="messages") from None
    except Exception as error:
        raise ImageRefused("The image cannot be read: it is broken or not complete.", param="messages") from error


def _drafted(picture: ImageFile, side: int) -> ImageFile:
    """The picture, of which no more than a side of so many pixels needs will be decoded, if its format allows that."""
    with _refusing():
        picture.draft(None, (side, side))
    return picture


def _upright(picture: ImageFile) -> PixelImage:
    with _refusing():
        picture.load()
        turn = _TURNS.get(_orientation(picture))
        return _pixels(picture if turn is None else picture.transpose(turn))


def _orientation(picture: ImageFile) -> int:
    """1, which is upright, also where the metadata cannot be read: many programs write odd ones."""
    try:
        orientation = picture.getexif().get(ExifTag.Orientation, 1)
    except Exception:
        return 1
    return orientation if isinstance(orientation, int) else 1


def _pixels(picture: Pillow.Image) -> PixelImage:
    """Made in strips, so that a large picture is never there in a third form."""
    width, height = picture.size
    num_rows = max(1, _STRIP_PIXELS // width)
    rgb = BytesIO()
    for top in range(0, height, num_rows):
        rgb.write(_as_rgb(picture.crop((0, top, width, min(top + num_rows, height)))).tobytes())
    return PixelImage(width, height, rgb.getvalue())


def _as_rgb(strip: Pillow.Image) -> Pillow.Image:
    if strip.mode == "I;16":
        strip = Pillow.frombytes("L", strip.size, strip.tobytes()[1::2])  # the high bytes; converting would clip
    if not strip.has_transparency_data:
        return strip.convert("RGB")
    layer = strip.convert("RGBA")
    white = Pillow.new("RGB", strip.size, "white")
    white.paste(layer, mask=layer)
    return white


def _shrunk(pixels: PixelImage, side: int) -> PixelImage:
    picture = Pillow.frombytes("RGB", (pixels.width, pixels.height), pixels.rgb)
    picture.thumbnail((side, side), Pillow.Resampling.BICUBIC)
    return PixelImage(*picture.size, picture.tobytes())
