"""The same few private images as every kind of source of one's own."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

SIZE = 8
NAMES = ("cat", "dog")


def pictures(count: int = 6, seed: int = 0) -> list[np.ndarray]:
    """Grey images of 8x8 that are all different."""
    return list(np.random.default_rng(seed).integers(0, 256, (count, SIZE, SIZE), dtype=np.uint8))


def png(array: np.ndarray) -> bytes:
    """A PNG file of it."""
    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG")
    return file.getvalue()


def label_of(number: int) -> int:
    """Two classes in turn."""
    return number % 2


def write_files(folder: Path, arrays: list[np.ndarray]) -> list[str]:
    """One PNG file each; their names."""
    (folder / "scans").mkdir(parents=True)
    names = [f"scans/{number}.png" for number in range(len(arrays))]
    for name, array in zip(names, arrays, strict=True):
        (folder / name).write_bytes(png(array))
    return names


def write_csv(path: Path, header: list[str], rows: list[list[Any]], encoding: str = "utf-8") -> Path:
    """A table."""
    with path.open("w", newline="", encoding=encoding) as file:
        csv.writer(file).writerows([header, *rows])
    return path


def make(kind: str, place: Path) -> Path:
    """Six images of two classes, as a folder, a CSV or Parquet table, an .npz file, or a saved dataset."""
    arrays = pictures()
    words = [NAMES[label_of(number)] for number in range(len(arrays))]
    if kind == "folder":
        for number, (array, word) in enumerate(zip(arrays, words, strict=True)):
            (place / "people" / word).mkdir(parents=True, exist_ok=True)
            (place / "people" / word / f"{number}.png").write_bytes(png(array))
        return place / "people"
    if kind == "csv":
        rows = list(zip(write_files(place, arrays), words, strict=True))
        return write_csv(place / "people.csv", ["path", "label"], [list(row) for row in rows])
    if kind == "npz":
        np.savez(place / "people.npz", x=np.stack(arrays), y=words)
        return place / "people.npz"
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    cells = [{"bytes": png(array), "path": None} for array in arrays]
    if kind == "parquet":
        from pyarrow import parquet

        parquet.write_table(pyarrow.table({"image": cells, "label": words}), place / "people.parquet")
        return place / "people.parquet"
    assert kind == "saved"
    numbers = [label_of(number) for number in range(len(arrays))]
    return write_saved(place / "people", pyarrow.table({"image": cells, "label": numbers}))


def write_saved(folder: Path, table: Any, names: tuple[str, ...] = NAMES) -> Path:
    """The files that ``Dataset.save_to_disk`` of `datasets` writes; a test compares with that library's own."""
    import pyarrow

    folder.mkdir(parents=True)
    file = str(folder / "data-00000-of-00001.arrow")
    with pyarrow.OSFile(file, "wb") as sink, pyarrow.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    features = {"image": {"_type": "Image"}, "label": {"names": list(names), "_type": "ClassLabel"}}
    (folder / "state.json").write_text(
        json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_split": None})
    )
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))
    return folder


KINDS = ("folder", "csv", "npz", "parquet", "saved")
