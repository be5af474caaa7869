"""A folder with a sub-folder a class, PNGs numbered as they were drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from datalens.writing.contents import AddImages, Contents
from datalens.writing.names import folder_names
from datalens.writing.png import png_bytes, png_name


@contextmanager
def folder_writer(path: Path, contents: Contents) -> Iterator[AddImages]:
    """``CLASS/NUMBER.png``; sub-folders as :func:`datalens.writing.names.folder_names` names them."""
    names = folder_names(contents.classes)
    path.mkdir()
    for number in range(len(names)) if contents.asked is None else contents.asked:
        (path / names[number]).mkdir()
    written = 0

    def add(images: np.ndarray, labels: np.ndarray) -> None:
        nonlocal written
        for image, label in zip(images, labels, strict=True):
            (path / names[int(label)] / png_name(written)).write_bytes(png_bytes(image))
            written += 1

    yield add
