"""One image as a PNG, without loss."""

from __future__ import annotations

import io

import numpy as np


def png_bytes(image: np.ndarray) -> bytes:
    """The PNG of an image uint8 [C, H, W], grey or colour.

    >>> png_bytes(np.zeros((1, 2, 2), np.uint8))[1:4]
    b'PNG'
    """
    from PIL import Image

    pixels = image[0] if len(image) == 1 else np.moveaxis(image, 0, 2)
    packed = io.BytesIO()
    Image.fromarray(pixels).save(packed, "PNG")
    return packed.getvalue()


def png_name(number: int) -> str:
    """The file name of the image that was drawn as number so and so."""
    return f"{number:06d}.png"
