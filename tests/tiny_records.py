"""A hundred records of 8x8 at most, in four classes, for tests of methods that sum over records."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from datalens.data.images import LabelledImages
from datalens.methods.method import PublicSize

SHAPE, CLASSES, DELTA = (1, 8, 8), 4, 1e-5
SIZE = PublicSize(100, SHAPE, CLASSES)
NAMES = tuple("abcd")


def noisy_images(seed: int, count: int) -> LabelledImages:
    """So many records of nothing but noise."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (count, *SHAPE), dtype=np.uint8)
    return LabelledImages(images, rng.integers(0, CLASSES, count), NAMES, "noise", public=True)


def only(data: LabelledImages, chosen: Any) -> LabelledImages:
    """Some of the records."""
    return dataclasses.replace(data, images=data.images[chosen], labels=data.labels[chosen])
