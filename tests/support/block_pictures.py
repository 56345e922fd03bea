"""Pictures for models that have never seen any."""

from io import BytesIO

import numpy as np
import PIL.Image

from octavo.core.images import Image

BLOCK = 8
"""Pixels."""


def blocks(seed: int, width: int, height: int) -> PIL.Image.Image:
    """Squares of any colours; sizes are rounded down to whole ones."""
    size = (height // BLOCK, width // BLOCK, 3)
    colours = np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8)
    return PIL.Image.fromarray(colours.repeat(BLOCK, axis=0).repeat(BLOCK, axis=1))


def as_image(picture: PIL.Image.Image) -> Image:
    """As a PNG file, which loses nothing."""
    file = BytesIO()
    picture.save(file, "PNG")
    return Image.of(file.getvalue())
