"""Drawn shapes: a small, learnable data set made in milliseconds from a seed, for tests and first tries."""

from __future__ import annotations

import numpy as np

from datalens.data.images import LabelledImages
from datalens.errors import ConfigError

CLASSES = ("disc", "square", "cross", "triangle")
SPLIT_SIZES = {"train": 4000, "test": 1000}
DEFAULT_IMAGE_SIZE = 16
MIN_IMAGE_SIZE = 8


def draw_shapes(num_records: int, *, image_size: int = DEFAULT_IMAGE_SIZE, seed: int = 0) -> LabelledImages:
    """Draw bright shapes on black, with jittered place, size and brightness; the same for the same arguments.

    Args:
        num_records: how many images; classes are as even as that allows, in random order.
        image_size: height and width in pixels.
        seed: any whole number from 0.

    Returns:
        Public images [num_records, 1, image_size, image_size] of four classes.

    Raises:
        ConfigError: a size that is too small.

    >>> draw_shapes(8).image_shape
    (1, 16, 16)
    """
    if num_records < 1:
        raise ConfigError(f"num_records is {num_records}, but at least 1 image must be drawn; raise it")
    if image_size < MIN_IMAGE_SIZE:
        raise ConfigError(
            f"--image-size {image_size} (image_size): shapes need {MIN_IMAGE_SIZE} pixels; raise it"
        )
    rng = np.random.default_rng([seed, image_size])
    labels = rng.permutation(np.arange(num_records, dtype=np.int64) % len(CLASSES))
    centre_R2 = rng.uniform(-0.1, 0.1, (num_records, 2)).astype(np.float32)
    radius_R = rng.uniform(0.22, 0.33, num_records).astype(np.float32)
    bright_R = rng.uniform(0.75, 1.0, num_records).astype(np.float32)
    axis = (np.arange(image_size, dtype=np.float32) + 0.5) / image_size - 0.5
    images = np.empty((num_records, 1, image_size, image_size), np.uint8)
    for number in range(len(CLASSES)):
        chosen = np.flatnonzero(labels == number)
        down = axis[np.newaxis, :, np.newaxis] - centre_R2[chosen, 0, np.newaxis, np.newaxis]
        right = axis[np.newaxis, np.newaxis, :] - centre_R2[chosen, 1, np.newaxis, np.newaxis]
        distance = _distance(number, down, right, radius_R[chosen, np.newaxis, np.newaxis])
        cover = np.clip(0.5 - distance * image_size, 0.0, 1.0)
        images[chosen, 0] = np.rint(255.0 * cover * bright_R[chosen, np.newaxis, np.newaxis])
    return LabelledImages(images, labels, CLASSES, "shapes", public=True)


def load_shapes(split: str, image_size: int | None = None) -> LabelledImages:
    """The standing train or test split of the shapes; the two share no draw."""
    seed = list(SPLIT_SIZES).index(split)
    return draw_shapes(SPLIT_SIZES[split], image_size=image_size or DEFAULT_IMAGE_SIZE, seed=seed)


def _distance(number: int, down: np.ndarray, right: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """How far each pixel lies outside the shape (negative inside), in units of the image's width."""
    if number == 0:
        return np.sqrt(down**2 + right**2) - radius
    if number == 1:
        return np.maximum(np.abs(down), np.abs(right)) - 0.85 * radius
    if number == 2:
        arm = 0.33 * radius
        upright = np.maximum(np.abs(down) - radius, np.abs(right) - arm)
        level = np.maximum(np.abs(right) - radius, np.abs(down) - arm)
        return np.minimum(upright, level)
    slope = (2.0 * np.abs(right) - (down + radius)) / np.sqrt(5.0)
    return np.maximum(slope, down - radius)
