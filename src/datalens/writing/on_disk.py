"""A folder that ``datasets.load_from_disk`` opens: one Arrow stream, and two JSON files that describe it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from datalens.writing.arrow import features, load_pyarrow, record_batches, schema
from datalens.writing.contents import AddImages, Contents, new_file, write_file
from datalens.writing.kinds import SampleFormat

DATA_NAME = "data-00000-of-00001.arrow"
STATE_NAME = "state.json"
INFO_NAME = "dataset_info.json"


@contextmanager
def on_disk_writer(path: Path, contents: Contents) -> Iterator[AddImages]:
    """A batch of rows for the images that come at once; the fingerprint follows from all pixels and labels.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    pyarrow = load_pyarrow(SampleFormat.DATASETS)
    layout = schema(pyarrow, contents)
    digest = hashlib.sha256(json.dumps([features(contents), contents.image_shape]).encode())
    written = 0
    path.mkdir()
    with new_file(path / DATA_NAME) as file, pyarrow.ipc.new_stream(file, layout) as stream:

        def add(images: np.ndarray, labels: np.ndarray) -> None:
            nonlocal written
            for rows in record_batches(pyarrow, layout, written, images, labels):
                stream.write_batch(rows)
            written += len(labels)
            for image, label in zip(images, labels, strict=True):
                digest.update(image.tobytes() + int(label).to_bytes(8, "little"))

        yield add
    write_file(path / STATE_NAME, _json(_state(digest.hexdigest()[:16])))
    write_file(path / INFO_NAME, _json({"features": features(contents)}))


def _state(fingerprint: str) -> dict[str, Any]:
    """What a freshly saved data set says of itself: no split, no format, all columns."""
    return {
        "_data_files": [{"filename": DATA_NAME}],
        "_fingerprint": fingerprint,
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }


def _json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()
