"""What a façade is given to train on, arrays or data that are already read, in one form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from datalens.data.arrays import labelled_images
from datalens.data.images import LabelledImages
from datalens.errors import ConfigError


def given_records(
    images: np.ndarray | LabelledImages,
    labels: np.ndarray | Sequence[Any] | None,
    *,
    classes: Sequence[object] | int | None,
    value_range: tuple[float, float] | None,
    groups: Sequence[Any] | np.ndarray | None,
) -> LabelledImages:
    """The records, as ``fit`` of every method takes them; see :meth:`datalens.DataLens.fit`.

    Raises:
        DataLensError: labels that are missing or given twice, or arrays that are no images.
    """
    if isinstance(images, LabelledImages):
        if labels is not None or classes is not None or value_range is not None:
            raise ConfigError("labels, classes and value_range belong to plain arrays: leave them out")
        data = images
    else:
        if labels is None:
            raise ConfigError("labels are missing: give one class for each image")
        data = labelled_images(images, labels, classes=classes, value_range=value_range)
    return data if groups is None else data.with_groups(groups)
