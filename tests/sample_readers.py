"""Samples of every form read back, in the order in which they were drawn."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from datalens.data.idx import read_idx
from datalens.writing import SampleFormat, arrow

Read = tuple[np.ndarray, np.ndarray]
"""Images uint8 [N, C, H, W] and class numbers [N]."""


def unpacked(png: bytes) -> np.ndarray:
    pixels = np.asarray(Image.open(io.BytesIO(png)))
    return pixels[np.newaxis] if pixels.ndim == 2 else np.moveaxis(pixels, 2, 0)


def read_npz(target: Path, classes: Sequence[str]) -> Read:
    with np.load(target, allow_pickle=False) as archive:
        return archive["x"], archive["y"]


def read_folder(target: Path, classes: Sequence[str]) -> Read:
    """By the numbers in the files' names, in which they were drawn."""
    files = sorted(target.rglob("*.png"), key=lambda file: int(file.stem))
    assert [file.name for file in files] == [f"{number:06d}.png" for number in range(len(files))]
    images = np.stack([unpacked(file.read_bytes()) for file in files])
    return images, np.array([classes.index(file.parent.name) for file in files])


def read_idx_folder(target: Path, classes: Sequence[str]) -> Read:
    assert sorted(file.name for file in target.iterdir()) == [
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
    ]
    images = read_idx(target / "train-images-idx3-ubyte")
    return images[:, np.newaxis], read_idx(target / "train-labels-idx1-ubyte").astype(np.int64)


def rows_of(table: Any) -> Read:
    cells = table.column("image").to_pylist()
    assert [cell["path"] for cell in cells] == [f"{number:06d}.png" for number in range(len(cells))]
    return np.stack([unpacked(cell["bytes"]) for cell in cells]), np.array(table.column("label").to_pylist())


def read_parquet(target: Path, classes: Sequence[str]) -> Read:
    return rows_of(with_pyarrow().parquet.read_table(target))


def read_arrow(target: Path, classes: Sequence[str]) -> Read:
    pyarrow = with_pyarrow()
    with (target / "data-00000-of-00001.arrow").open("rb") as file, pyarrow.ipc.open_stream(file) as stream:
        return rows_of(stream.read_all())


def with_pyarrow() -> Any:
    pytest.importorskip("pyarrow.parquet", reason="pyarrow (extra parquet) is not installed")
    return arrow.load_pyarrow(SampleFormat.PARQUET)


READERS: dict[SampleFormat, Callable[[Path, Sequence[str]], Read]] = {
    SampleFormat.NPZ: read_npz,
    SampleFormat.FOLDER: read_folder,
    SampleFormat.PARQUET: read_parquet,
    SampleFormat.IDX: read_idx_folder,
    SampleFormat.DATASETS: read_arrow,
}
