"""Drawn shapes are repeatable, even over classes, quick, and can be told apart."""

from __future__ import annotations

import numpy as np
import pytest

from datalens.data import load
from datalens.data.shapes import draw_shapes
from datalens.errors import ConfigError


def test_repeatable_and_split_apart() -> None:
    train, again, test = load("shapes"), load("shapes"), load("shapes", split="test")
    np.testing.assert_array_equal(train.images, again.images)
    assert train.public
    assert (train.images.shape, test.images.shape) == ((4000, 1, 16, 16), (1000, 1, 16, 16))
    seen = {image.tobytes() for image in train.images}
    assert sum(image.tobytes() in seen for image in test.images) < 10


def test_classes_are_even_and_in_random_order() -> None:
    labels = draw_shapes(402, seed=3).labels
    assert sorted(np.bincount(labels).tolist()) == [100, 100, 101, 101]
    assert (labels[:100] != np.arange(100) % 4).any()


@pytest.mark.parametrize("image_size", [16, 28])
def test_shapes_stay_inside_and_differ_by_class(image_size: int) -> None:
    data = draw_shapes(400, image_size=image_size)
    assert data.image_shape == (1, image_size, image_size)
    border = np.concatenate([data.images[:, 0, 0], data.images[:, 0, :, 0]])
    assert border.max() == 0
    assert data.images.reshape(400, -1).max(axis=1).min() > 128


def test_nearest_class_mean_does_much_better_than_chance() -> None:
    train, test = load("shapes"), load("shapes", split="test")
    pixels, held = train.images.reshape(4000, -1) / 255.0, test.images.reshape(1000, -1) / 255.0
    means = np.stack([pixels[train.labels == number].mean(axis=0) for number in range(4)])
    nearest = ((held[:, np.newaxis] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == test.labels).mean() > 0.55


def test_refusals() -> None:
    with pytest.raises(ConfigError, match="num_records is 0"):
        draw_shapes(0)
    with pytest.raises(ConfigError, match="--image-size 5"):
        draw_shapes(4, image_size=5)
    with pytest.raises(ConfigError, match="16x20"):
        load("shapes", image_size=(16, 20))
