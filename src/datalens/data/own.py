"""People's own sources by their path: which kind lies there, which splits it has, and what it lists."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from datalens.data.arrays import npz_splits
from datalens.data.folder import folder_splits, list_folder
from datalens.data.hugging_face import is_saved, list_saved, saved_splits
from datalens.data.images import Split
from datalens.data.listing import Listing
from datalens.data.table import TABLE_SUFFIXES, Columns, list_table, table_splits
from datalens.errors import DataError


class OwnKind(StrEnum):
    """What may lie at a path."""

    FOLDER = "folder"
    NPZ = "npz"
    TABLE = "table"
    SAVED = "saved dataset"


OWN_OPTIONS: dict[OwnKind, frozenset[str]] = {
    OwnKind.FOLDER: frozenset({"channels", "background", "skip_damaged"}),
    OwnKind.NPZ: frozenset({"value_range", "layout", "group_column"}),
    OwnKind.TABLE: frozenset(
        {"channels", "background", "skip_damaged", "path_column", "label_column", "group_column"}
    ),
    OwnKind.SAVED: frozenset(
        {"channels", "background", "skip_damaged", "path_column", "label_column", "group_column"}
    ),
}
"""The options of :func:`datalens.data.load` that each kind has a use for, besides those that all have."""


def kind_at(path: Path) -> OwnKind | None:
    """What lies at a path, by its name and what a folder holds; None for nothing that is known.

    >>> str(kind_at(Path("people.csv")))
    'table'
    """
    if path.is_dir():
        return OwnKind.SAVED if is_saved(path) else OwnKind.FOLDER
    suffix = path.suffix.lower()
    return OwnKind.NPZ if suffix == ".npz" else OwnKind.TABLE if suffix in TABLE_SUFFIXES else None


def own_splits(kind: OwnKind, path: Path) -> tuple[Split, ...]:
    """Which of train and test a source has, without reading an image."""
    readers = {
        OwnKind.FOLDER: folder_splits,
        OwnKind.NPZ: npz_splits,
        OwnKind.TABLE: table_splits,
        OwnKind.SAVED: saved_splits,
    }
    return readers[kind](path)


def list_own(
    kind: OwnKind,
    path: Path,
    split: str,
    columns: Columns | None = None,
    classes: Sequence[object] | int | None = None,
) -> Listing:
    """What a source lists for a split; no image is read.

    Raises:
        DataLensError: it can't be listed; says why.
    """
    columns = columns or Columns()
    if kind is OwnKind.TABLE:
        return list_table(path, split, columns)
    if kind is OwnKind.SAVED:
        return list_saved(path, split, columns)
    if kind is OwnKind.FOLDER:
        return list_folder(path, split, classes)
    raise DataError(f"{path}: lists no files; read it as arrays")
