"""Public images in another size and other colours."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from datalens.data.fitting import fitted
from datalens.data.images import LabelledImages


def coloured(count: int = 6, size: int = 8) -> LabelledImages:
    images = np.random.default_rng(0).integers(0, 256, (count, 3, size, size), dtype=np.uint8)
    return LabelledImages(images, np.arange(count) % 2, ("a", "b"), "drawn", public=True)


def test_grey_is_the_lightness_that_pillow_gives() -> None:
    data = coloured()
    expected = [np.asarray(Image.fromarray(np.moveaxis(image, 0, 2)).convert("L")) for image in data.images]
    found = fitted(data, (1, 8, 8)).images
    assert np.abs(found[:, 0].astype(int) - np.stack(expected)).max() <= 1
    grey = replace(data, images=data.images[:, :1])
    assert (fitted(replace(grey, images=grey.images.repeat(3, 1)), (1, 8, 8)).images == grey.images).all()


def test_grey_images_get_their_grey_in_every_colour() -> None:
    grey = replace(coloured(), images=coloured().images[:, :1])
    found = fitted(grey, (3, 8, 8)).images
    assert all((found[:, channel] == grey.images[:, 0]).all() for channel in range(3))


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 4, 4), (1, 16, 16)])
def test_any_shape_comes_out_and_labels_stay(shape: tuple[int, int, int]) -> None:
    data = coloured()
    found = fitted(data, shape)
    assert found.image_shape == shape
    assert (found.labels == data.labels).all()
    assert (found.classes, found.public) == (data.classes, True)


def test_what_fits_is_left_as_it_is() -> None:
    data = coloured()
    assert (fitted(data, (3, 8, 8)).images == data.images).all()
