"""Public images made to another size and number of channels; each image by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from datalens.data.images import LabelledImages
from datalens.data.pixels import resize_images

GREY = np.array([299, 587, 114])
"""Thousandths of red, green and blue in the lightness of a pixel (ITU-R BT.601)."""


def fitted(data: LabelledImages, image_shape: tuple[int, int, int]) -> LabelledImages:
    """The same images with (C, H, W) as asked: scaled, and grey or with the grey in all three colours.

    >>> import numpy as np
    >>> red = np.zeros((1, 3, 4, 4), np.uint8)
    >>> red[:, 0] = 255
    >>> data = LabelledImages(red, np.array([0]), ("a",), "red", public=True)
    >>> fitted(data, (1, 2, 2)).images[0, 0, 0].tolist()
    [76, 76]
    """
    channels, height, width = image_shape
    images = data.images
    if images.shape[1] > channels:
        lightness = np.tensordot(images.astype(np.int64), GREY, axes=(1, 0))
        images = ((lightness + 500) // 1000).astype(np.uint8)[:, None]
    elif images.shape[1] < channels:
        images = np.repeat(images, channels, axis=1)
    return replace(data, images=resize_images(images, (height, width)))
