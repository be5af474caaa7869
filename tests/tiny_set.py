"""A published set of a few bytes, for tests of finding, checking and fetching."""

from __future__ import annotations

import gzip
import hashlib
import struct
from pathlib import Path

import numpy as np

from datalens.data.published import PublishedFile, PublishedSet

_ARRAYS = {
    "train-images-idx3-ubyte": np.arange(24, dtype=np.uint8).reshape(6, 2, 2),
    "train-labels-idx1-ubyte": np.array([0, 1, 2, 0, 1, 2], np.uint8),
    "t10k-images-idx3-ubyte": np.arange(12, dtype=np.uint8).reshape(3, 2, 2),
    "t10k-labels-idx1-ubyte": np.array([2, 1, 0], np.uint8),
}


def tiny_bytes() -> dict[str, bytes]:
    """File name -> bytes, uncompressed."""
    return {
        name: bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
        for name, array in _ARRAYS.items()
    }


def write_tiny(folder: Path, *, packed: bool) -> None:
    """Write all four files, plain or gzipped."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in tiny_bytes().items():
        (folder / (name + ".gz" * packed)).write_bytes(gzip.compress(data, mtime=0) if packed else data)


_FILES = [
    PublishedFile(name, hashlib.md5(data).hexdigest(), _ARRAYS[name].shape)
    for name, data in tiny_bytes().items()
]

TINY = PublishedSet(
    name="tiny",
    title="three classes of 2x2 pixels",
    classes=("a", "b", "c"),
    files={"train": (_FILES[0], _FILES[1]), "test": (_FILES[2], _FILES[3])},
    folders=("tiny", "Tiny/raw"),
    torchvision_class="Tiny",
    npm_package="tiny-data",
    debian_package="dataset-tiny",
)
