"""MNIST's own form: one file of grey images and one of labels, each a byte a value.

Source: the IDX format as :mod:`datalens.data.idx` reads it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from datalens.errors import ConfigError
from datalens.writing.contents import AddImages, Contents, new_file

IMAGES_NAME = "train-images-idx3-ubyte"
LABELS_NAME = "train-labels-idx1-ubyte"
_BYTES = 0x08
_MOST_CLASSES = 256
_MOST_IMAGES = 2**32 - 1


def check_idx(contents: Contents) -> None:
    """Refuse what IDX files as MNIST's cannot hold.

    Raises:
        ConfigError: colour images, more classes than a byte has values, or more images than a header can say.
    """
    if contents.image_shape[0] != 1:
        raise ConfigError(
            f"idx holds grey images only, and these have {contents.image_shape[0]} channels; "
            "choose npz, folder, parquet or datasets"
        )
    if len(contents.classes) > _MOST_CLASSES:
        raise ConfigError(
            f"idx holds at most {_MOST_CLASSES} classes, and there are {len(contents.classes)}; choose another format"
        )
    if contents.num_images > _MOST_IMAGES:
        raise ConfigError(f"idx holds at most {_MOST_IMAGES} images; ask for fewer, or choose another format")


@contextmanager
def idx_writer(path: Path, contents: Contents) -> Iterator[AddImages]:
    """``train-images-idx3-ubyte`` [N, H, W] and ``train-labels-idx1-ubyte`` [N] in a folder, not gzipped."""
    check_idx(contents)
    path.mkdir()
    with new_file(path / IMAGES_NAME) as images_file, new_file(path / LABELS_NAME) as labels_file:
        images_file.write(_header(contents.num_images, *contents.image_shape[1:]))
        labels_file.write(_header(contents.num_images))

        def add(images: np.ndarray, labels: np.ndarray) -> None:
            images_file.write(images.astype(np.uint8, copy=False).tobytes())
            labels_file.write(np.asarray(labels).astype(np.uint8).tobytes())

        yield add


def _header(*shape: int) -> bytes:
    return bytes([0, 0, _BYTES, len(shape)]) + struct.pack(f">{len(shape)}I", *shape)
