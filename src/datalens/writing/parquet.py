"""One Parquet file with PNGs, in which Hugging Face's ``datasets`` finds images and class names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from datalens.writing.arrow import load_pyarrow, record_batches, schema
from datalens.writing.contents import AddImages, Contents, new_file
from datalens.writing.kinds import SampleFormat


@contextmanager
def parquet_writer(path: Path, contents: Contents) -> Iterator[AddImages]:
    """A row an image, and a row group for the images that come at once.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    pyarrow = load_pyarrow(SampleFormat.PARQUET)
    layout = schema(pyarrow, contents)
    written = 0
    with new_file(path) as file, pyarrow.parquet.ParquetWriter(file, layout) as table:

        def add(images: np.ndarray, labels: np.ndarray) -> None:
            nonlocal written
            for rows in record_batches(pyarrow, layout, written, images, labels):
                table.write_batch(rows)
            written += len(labels)

        yield add
