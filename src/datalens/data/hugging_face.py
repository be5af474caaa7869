"""Folders that `save_to_disk` of Hugging Face `datasets` wrote, read without that library and without a network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from datalens.data.images import SPLITS, Split
from datalens.data.listing import Listing
from datalens.data.table import Columns, Table, list_rows
from datalens.errors import DataError

_SEVERAL = "dataset_dict.json"
_STATE = "state.json"
_INFO = "dataset_info.json"


def is_saved(folder: Path) -> bool:
    """Whether `datasets` saved a ``Dataset`` or a ``DatasetDict`` there."""
    return (folder / _SEVERAL).is_file() or (folder / _STATE).is_file()


def saved_splits(folder: Path) -> tuple[Split, ...]:
    """Which of train and test there are; a ``Dataset`` is train.

    Raises:
        DataError: damaged, or splits of other names alone.
    """
    if not (folder / _SEVERAL).is_file():
        return ("train",)
    named = _read(folder / _SEVERAL).get("splits")
    known = named if isinstance(named, list) else []
    found: tuple[Split, ...] = tuple(split for split in SPLITS if split in known)
    if not found:
        raise DataError(f"{folder}: has neither a train nor a test split; save a DatasetDict with 'train'")
    return found


def list_saved(folder: Path, split: str, columns: Columns) -> Listing:
    """The rows of one split.

    Raises:
        DataError: no such split, damaged, or pyarrow is not installed.
        ConfigError: columns that it does not have.
    """
    splits = saved_splits(folder)
    if split not in splits:
        raise DataError(f"{folder}: has no {split} split; save a DatasetDict with 'train' and '{split}'")
    if not (folder / _SEVERAL).is_file():
        return list_rows(_open(folder), columns)
    listing = list_rows(_open(folder / split), columns)
    if split == "train" or "train" not in splits:
        return listing
    train = list_rows(_open(folder / "train"), columns)
    return Listing(listing.name, listing.records, train.known_classes, train.train_labels, listing.unit)


def _open(folder: Path) -> Table:
    """One saved ``Dataset``."""
    from datalens.data.arrow import open_streams

    state, info = _read(folder / _STATE), _read(folder / _INFO)
    listed = state.get("_data_files")
    names = (
        [file.get("filename") for file in listed if isinstance(file, dict)]
        if isinstance(listed, list)
        else []
    )
    files = [folder / name for name in names if isinstance(name, str) and Path(name).name == name]
    if not files or len(files) < len(names):
        raise DataError(f"{folder / _STATE}: names no data files of this folder; save the dataset again")
    if state.get("_indices_data_files"):
        raise DataError(f"{folder}: chooses rows by indices; save it again with a newer version of datasets")
    return open_streams(folder, files, info.get("features"))


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or "no JSON"
        raise DataError(f"{path}: can't be read ({reason}); save the dataset again") from error
    if not isinstance(found, dict):
        raise DataError(f"{path}: is not what datasets writes there; save the dataset again")
    return found
