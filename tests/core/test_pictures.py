"""Pictures of all formats and modes, broken ones, and ones that would grow too large."""

import resource
import struct
import zlib
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow
from PIL import ImageChops
from PIL.PngImagePlugin import PngInfo

from octavo.core.images import Image
from octavo.core.pictures import PixelImage, decode_image, picture_size
from octavo.errors import ImageRefused
from octavo.prompting import checked_image
from support.pictures import plain, saved

# As in production; the tests' own filter, which makes errors of warnings, comes before the module's.
pytestmark = pytest.mark.filterwarnings("ignore:::PIL")

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
SIZE = (12, 7)
WHITE, RED, BLUE = (255, 255, 255), (255, 0, 0), (0, 0, 255)


def decoded(data: bytes, *, coarse_side: int | None = None) -> PixelImage:
    return decode_image(Image.of(data, is_coarse=coarse_side is not None), coarse_side=coarse_side or 1)


def pixels(data: bytes, *, coarse_side: int | None = None) -> Pillow.Image:
    picture = decoded(data, coarse_side=coarse_side)
    return Pillow.frombytes("RGB", (picture.width, picture.height), picture.rgb)


def gradient(size: tuple[int, int] = SIZE) -> Pillow.Image:
    """Another colour in each corner, so that every turn of it differs."""
    width, height = size
    picture = Pillow.new("RGB", size)
    picture.putdata([(250 * x // width, 250 * y // height, 90) for y in range(height) for x in range(width)])
    return picture


def distance(one: Pillow.Image, other: Pillow.Image) -> int:
    """The largest of any channel of any pixel."""
    assert one.size == other.size
    return max(high for _, high in ImageChops.difference(one, other).getextrema())


LOSSLESS: dict[str, Any] = {"WEBP": {"lossless": True}}


@pytest.mark.parametrize("format", ["PNG", "WEBP", "BMP"])
def test_lossless_formats_are_decoded_to_the_same_pixels(format: str) -> None:
    data = saved(gradient(), format, **LOSSLESS.get(format, {}))
    assert picture_size(data) == SIZE
    assert pixels(data).tobytes() == gradient().tobytes()


@pytest.mark.parametrize("format", ["JPEG", "GIF", "WEBP"])
def test_lossy_formats_are_decoded_to_nearly_the_same_pixels(format: str) -> None:
    data = saved(gradient((64, 48)), format, **({} if format == "GIF" else {"quality": 95}))
    assert picture_size(data) == (64, 48)
    assert distance(pixels(data), gradient((64, 48))) < 40


@pytest.mark.parametrize("size", [(1, 1), (1, 3000), (3000, 1), (2000, 1500)])
def test_strips_make_up_the_whole_picture(size: tuple[int, int]) -> None:
    picture = gradient(size)
    assert pixels(saved(picture, "BMP")).tobytes() == picture.tobytes()


MODES: dict[str, Callable[[], Pillow.Image]] = {
    "black and white": lambda: Pillow.new("1", SIZE, 1),
    "gray": lambda: Pillow.new("L", SIZE, 255),
    "gray with alpha": lambda: Pillow.new("LA", SIZE, (255, 255)),
    "palette": lambda: Pillow.new("RGB", SIZE, WHITE).convert("P", palette=Pillow.Palette.ADAPTIVE),
    "RGB": lambda: Pillow.new("RGB", SIZE, WHITE),
    "RGBA": lambda: Pillow.new("RGBA", SIZE, (*WHITE, 255)),
    "16 bits": lambda: Pillow.new("I;16", SIZE, 0xFFFF),
}


@pytest.mark.parametrize("mode", MODES)
def test_white_is_white_in_every_mode(mode: str) -> None:
    assert decoded(saved(MODES[mode](), "PNG")) == PixelImage(*SIZE, b"\xff" * 3 * SIZE[0] * SIZE[1])


@pytest.mark.parametrize("level", [0, 0x00FF, 0x7F80, 0x80FF, 0xFFFF])
def test_a_level_of_16_bits_is_shown_by_its_high_byte(level: int) -> None:
    data = saved(Pillow.new("I;16", SIZE, level), "PNG")
    assert decoded(data).rgb == bytes([level >> 8]) * 3 * SIZE[0] * SIZE[1]


@pytest.mark.parametrize(("ink", "color"), [((0, 255, 255, 0), RED), ((255, 255, 0, 0), BLUE), ((0, 0, 0, 0), WHITE)])
def test_inks_are_colours(ink: tuple[int, ...], color: tuple[int, ...]) -> None:
    data = saved(Pillow.new("CMYK", SIZE, ink), "JPEG", quality=95)
    assert distance(pixels(data), Pillow.new("RGB", SIZE, color)) < 8


@pytest.mark.parametrize("format", ["PNG", "WEBP"])
@pytest.mark.parametrize(("alpha", "color"), [(0, WHITE), (255, RED), (51, (255, 204, 204))])
def test_what_is_transparent_is_on_white(format: str, alpha: int, color: tuple[int, ...]) -> None:
    data = saved(Pillow.new("RGBA", SIZE, (*RED, alpha)), format, **LOSSLESS.get(format, {}))
    assert distance(pixels(data), Pillow.new("RGB", SIZE, color)) <= 1


@pytest.mark.parametrize("format", ["PNG", "GIF"])
def test_a_transparent_colour_of_a_palette_is_white(format: str) -> None:
    picture = Pillow.new("P", (2, 1))
    picture.putpalette([*RED, *BLUE])
    picture.putdata([0, 1])
    assert pixels(saved(picture, format, transparency=0)).tobytes() == bytes([*WHITE, *BLUE])


def test_a_transparent_gray_is_white() -> None:
    picture = Pillow.new("L", (2, 1))
    picture.putdata([10, 20])
    assert pixels(saved(picture, "PNG", transparency=10)).tobytes() == bytes([*WHITE, 20, 20, 20])


@pytest.mark.parametrize("format", ["PNG", "GIF", "WEBP"])
def test_an_animation_is_its_first_frame(format: str) -> None:
    frames = [Pillow.new("RGB", SIZE, color) for color in (RED, BLUE, WHITE)]
    options = {"save_all": True, "append_images": frames[1:], "duration": 40, **LOSSLESS.get(format, {})}
    assert distance(pixels(saved(frames[0], format, **options)), frames[0]) <= 2


TURNS = {
    1: lambda picture: picture,
    2: lambda picture: picture.transpose(Pillow.Transpose.FLIP_LEFT_RIGHT),
    3: lambda picture: picture.rotate(180),
    4: lambda picture: picture.transpose(Pillow.Transpose.FLIP_TOP_BOTTOM),
    5: lambda picture: picture.rotate(90, expand=True).transpose(Pillow.Transpose.FLIP_TOP_BOTTOM),
    6: lambda picture: picture.rotate(-90, expand=True),
    7: lambda picture: picture.rotate(90, expand=True).transpose(Pillow.Transpose.FLIP_LEFT_RIGHT),
    8: lambda picture: picture.rotate(90, expand=True),
    9: lambda picture: picture,
}


@pytest.mark.parametrize("orientation", TURNS)
def test_a_picture_is_turned_as_its_metadata_say(orientation: int) -> None:
    exif = Pillow.Exif()
    exif[0x0112] = orientation
    assert pixels(saved(gradient(), "PNG", exif=exif)).tobytes() == TURNS[orientation](gradient()).tobytes()


@pytest.mark.parametrize(
    "exif", [b"", b"Exif\0\0", b"Exif\0\0II*\0\xff\xff\xff\x7f", b"Exif\0\0MM\0*\0\0\0\x08\xff\xff"]
)
@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
def test_odd_metadata_are_no_fault(exif: bytes, format: str) -> None:
    assert decoded(saved(gradient(), format, exif=exif)).width == SIZE[0]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(("size", "shrunk"), [((400, 200), (64, 32)), ((33, 300), (7, 64)), ((64, 64), (64, 64))])
def test_a_coarse_image_fits_into_a_square(format: str, size: tuple[int, int], shrunk: tuple[int, int]) -> None:
    assert pixels(plain("red", format, size), coarse_side=64).size == shrunk


@pytest.mark.parametrize("format", FORMATS)
def test_a_coarse_image_is_never_enlarged(format: str) -> None:
    data = plain("red", format, SIZE)
    assert decoded(data, coarse_side=512) == decoded(data)


@pytest.mark.parametrize("format", FORMATS)
def test_a_coarse_image_looks_the_same(format: str) -> None:
    data = saved(gradient((800, 600)), format)
    expected = gradient((800, 600)).resize((80, 60), Pillow.Resampling.BICUBIC)
    assert distance(pixels(data, coarse_side=80), expected) < 40


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_that_ends_early_is_refused_or_loses_nothing(format: str) -> None:
    data = saved(gradient(), format, **LOSSLESS.get(format, {}))
    whole = decoded(data)
    for length in range(len(data)):
        with suppress(ImageRefused):
            assert decoded(data[:length]) == whole


@pytest.mark.parametrize("format", ["JPEG", "PNG", "GIF", "WEBP", "BMP"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_half_a_picture_is_refused(format: str, share: float) -> None:
    data = saved(Pillow.effect_noise((64, 64), 60).convert("RGB"), format)
    with pytest.raises(ImageRefused, match="broken or not complete") as refused:
        decoded(data[: int(len(data) * share)])
    assert (refused.value.code, refused.value.param) == ("invalid_image", "messages")


@given(format=st.sampled_from(FORMATS), data=st.data())
def test_a_changed_byte_makes_another_picture_or_none(format: str, data: st.DataObject) -> None:
    file = bytearray(saved(gradient(), format))
    for _ in range(data.draw(st.integers(1, 4))):
        file[data.draw(st.integers(0, len(file) - 1))] = data.draw(st.integers(0, 255))
    check_picture_or_refusal(bytes(file))


@given(
    start=st.sampled_from([b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF\x40\0\0\0WEBPVP8 ", b"GIF89a", b"BM"]),
    rest=st.binary(max_size=200),
)
def test_random_bytes_are_a_picture_or_refused(start: bytes, rest: bytes) -> None:
    check_picture_or_refusal(start + rest)


def check_picture_or_refusal(data: bytes) -> None:
    with suppress(ImageRefused):
        picture = decode_image(checked_image(data, is_coarse=False, max_size=10**6, max_pixels=10**6), coarse_side=8)
        assert len(picture.rgb) == 3 * picture.width * picture.height


@pytest.mark.parametrize(
    "data", [b"", b"hello", b"<svg/>", b"II*\0", b"MM\0*", b"\0\0\1\0", b"%!PS-Adobe-3.0", b"qoif", b"\x97JB2", b"8BPS"]
)
def test_other_formats_are_not_read(data: bytes) -> None:
    with pytest.raises(ImageRefused, match="PNG, JPEG, WebP, GIF and BMP"):
        picture_size(data + bytes(64))


@pytest.mark.parametrize("format", FORMATS)
def test_the_limits_are_what_is_just_allowed(format: str) -> None:
    data = plain("red", format, SIZE)
    size, num_pixels = len(data), SIZE[0] * SIZE[1]
    assert checked_image(data, is_coarse=True, max_size=size, max_pixels=num_pixels) == Image.of(data, is_coarse=True)
    with pytest.raises(ImageRefused, match=f"at most {size - 1} bytes"):
        checked_image(data, is_coarse=True, max_size=size - 1, max_pixels=num_pixels)
    with pytest.raises(ImageRefused, match=f"12 x 7 pixels; at most {num_pixels - 1}"):
        checked_image(data, is_coarse=True, max_size=size, max_pixels=num_pixels - 1)


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_of_size(width: int, height: int, *extra: bytes) -> bytes:
    """A gray picture of which there are at most some black rows."""
    rows = zlib.compress(bytes(min((width + 1) * height, 10_000)))
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(extra) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def gif_of_size(width: int, height: int, frame: tuple[int, int] | None = None) -> bytes:
    frame_width, frame_height = frame or (width, height)
    screen = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    return screen + b"," + struct.pack("<HHHHB", 0, 0, frame_width, frame_height, 0) + b"\x02\x02\x44\x01\0;"


def webp_of_size(width: int, height: int) -> bytes:
    """A lossless one, with no pixels behind its header."""
    bits = (width - 1) | (height - 1) << 14
    body = b"VP8L" + struct.pack("<I", 16) + b"\x2f" + struct.pack("<I", bits) + bytes(11)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def bmp_of_size(width: int, height: int) -> bytes:
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + info


BOMBS = {
    "png": png_of_size(20_000, 20_000),
    "png beyond Pillow's own bounds": png_of_size(2**31 - 1, 2**31 - 1),
    "png of one row": png_of_size(2**31 - 1, 1),
    "gif": gif_of_size(65_535, 65_535),
    "gif with a large frame": gif_of_size(1, 1, (65_535, 65_535)),
    "gif with a frame that Pillow would warn of": gif_of_size(1, 1, (10_000, 10_000)),
    "webp": webp_of_size(16_384, 16_384),
    "webp that Pillow would warn of": webp_of_size(10_000, 10_000),
    "bmp": bmp_of_size(20_000, 20_000),
    "bmp upside down": bmp_of_size(20_000, -20_000),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_of_a_huge_picture_is_refused_by_its_header(name: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ImageRefused, match="pixels"):
        checked_image(BOMBS[name], is_coarse=False, max_size=10**6, max_pixels=50_000_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024  # kB


@pytest.mark.parametrize("name", [b"zTXt", b"iTXt", b"iCCP"])
def test_a_text_that_unpacks_to_very_much_is_refused(name: bytes) -> None:
    packed = zlib.compress(bytes(200 * 2**20), 9)
    keyword = b"key\0\0" if name != b"iTXt" else b"key\0\1\0\0\0"
    data = png_of_size(1, 1, chunk(name, keyword + packed))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ImageRefused, match="broken"):
        decoded(data)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024  # kB


def test_a_jpeg_that_goes_over_its_pixels_again_and_again_is_refused() -> None:
    data = saved(gradient((64, 64)), "JPEG", progressive=True)
    start = data.rindex(b"\xff\xda")
    scan = data[start:-2]
    assert decoded(data[:-2] + scan + data[-2:]).width == 64
    with pytest.raises(ImageRefused, match="scans"):
        checked_image(data[:-2] + scan * 300 + data[-2:], is_coarse=False, max_size=10**6, max_pixels=10**6)


@pytest.mark.parametrize("size", [(1, 200), (200, 1), (400, 2)])
def test_a_picture_of_extreme_shape_is_refused(size: tuple[int, int]) -> None:
    data = plain("red", "PNG", size)
    assert checked_image(data, is_coarse=False, max_size=10**6, max_pixels=10**6) == Image.of(data)
    longer = plain("red", "PNG", (size[0] + (size[0] > 1), size[1] + (size[0] == 1)))
    with pytest.raises(ImageRefused, match="a side may be at most 200 times the other"):
        checked_image(longer, is_coarse=False, max_size=10**6, max_pixels=10**6)


def test_a_picture_with_much_metadata_is_read() -> None:
    info = PngInfo()
    info.add_text("comment", "x" * 500_000, zip=True)
    file = BytesIO()
    gradient().save(file, "PNG", pnginfo=info)
    assert decoded(file.getvalue()).rgb == gradient().tobytes()
