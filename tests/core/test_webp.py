"""The size of WebP pictures by their headers, and by Pillow's decoder."""

from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

from octavo.core.webp import webp_size
from support.pictures import saved

FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "lossy": ("RGB", {}),
    "lossless": ("RGB", {"lossless": True}),
    "lossy with alpha": ("RGBA", {}),
    "lossless with alpha": ("RGBA", {"lossless": True}),
    "animated": ("RGBA", {"save_all": True}),
    "with metadata": ("RGB", {"exif": b"Exif\0\0", "xmp": b"<x/>", "icc_profile": b"none"}),
}
"""Modes of pictures, and how they are saved."""


def picture(form: str, size: tuple[int, int]) -> bytes:
    mode, options = FORMS[form]
    first, second = (Pillow.new("RGBA", size, (red, 10, 10, 99)).convert(mode) for red in (0, 200))
    return saved(first, "WEBP", append_images=[second], **options)


def told_by_pillow(data: bytes) -> tuple[int, int] | None:
    """None where Pillow does not open it."""
    try:
        return Pillow.open(BytesIO(data), formats=["WEBP"]).size
    except Exception:
        return None


@pytest.mark.parametrize("size", [(1, 1), (12, 7), (16383, 1), (1, 16383), (257, 4097)])
@pytest.mark.parametrize("form", FORMS)
def test_the_size_is_that_of_the_picture(form: str, size: tuple[int, int]) -> None:
    assert webp_size(picture(form, size)) == size


@given(form=st.sampled_from(sorted(FORMS)), data=st.data())
def test_the_size_is_what_pillow_says_wherever_it_can_read_a_changed_file(form: str, data: st.DataObject) -> None:
    file = bytearray(picture(form, (12, 7)))
    for _ in range(data.draw(st.integers(1, 3))):
        file[data.draw(st.integers(8, 40))] = data.draw(st.integers(0, 255))
    if (size := told_by_pillow(bytes(file))) is not None:
        assert webp_size(bytes(file)) == size


@given(st.sampled_from([b"", b"VP8 ", b"VP8L", b"VP8X"]), st.binary(max_size=40))
def test_random_bytes_have_a_size_or_are_refused(chunk: bytes, rest: bytes) -> None:
    data = b"RIFF\x40\0\0\0WEBP" + chunk + rest
    try:
        width, height = webp_size(data)
    except ValueError:
        assert told_by_pillow(data) is None
    else:
        assert 0 <= width <= 2**24
        assert 0 <= height <= 2**24
