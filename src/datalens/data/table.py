"""Rows of a table, one a record: paths of images or the images themselves, labels, and groups if there are any."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datalens.data.images import SPLITS, Split
from datalens.data.listing import Listed, Listing
from datalens.data.near import near_names
from datalens.errors import ConfigError, DataError

TABLE_SUFFIXES = (".csv", ".parquet")
SPLIT_COLUMN = "split"
UNUSED_SPLIT = "validation"
_PATH_COLUMNS = ("path", "file", "file_name", "image")
_LABEL_COLUMNS = ("label", "class")
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_SHOWN = 8


@dataclass(frozen=True)
class Columns:
    """Which columns hold what; None for the usual names, and no groups."""

    path: str | None = None
    label: str | None = None
    group: str | None = None


@dataclass(frozen=True)
class Table:
    """A table whose columns are read when they are asked for.

    Attributes:
        name: where it lies, for messages.
        folder: where its relative paths begin.
        columns: its names.
        read: the values of one column.
        class_names: what a column's whole numbers stand for, where the table says so itself.
    """

    name: str
    folder: Path
    columns: tuple[str, ...]
    read: Callable[[str], Sequence[Any]]
    class_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def table_splits(path: Path) -> tuple[Split, ...]:
    """Which of train and test a table has, by its column ``split``; train alone where it has no such column.

    Raises:
        DataError: a file that can't be read, or splits of other names.
    """
    table = open_table(path)
    if SPLIT_COLUMN not in table.columns:
        return ("train",)
    found = set(_splits_of(table))
    if not found & set(SPLITS):
        raise DataError(f"{path}: its column 'split' says neither train nor test; add such rows")
    return tuple(split for split in SPLITS if split in found)


def list_table(path: Path, split: str, columns: Columns) -> Listing:
    """The rows of one split of a CSV or Parquet file.

    Raises:
        DataError: the file is not what it should be, or has no such split.
        ConfigError: columns that it does not have.
    """
    table = open_table(path)
    if SPLIT_COLUMN not in table.columns:
        if split != "train":
            raise DataError(f"{path}: has no {split} split; add a column 'split' that says train or {split}")
        return list_rows(table, columns)
    splits = _splits_of(table)
    if split not in splits:
        raise DataError(f"{path}: its column 'split' never says {split}; add such rows")
    rows, train = (
        [row for row, found in enumerate(splits) if found == wanted] for wanted in (split, "train")
    )
    return list_rows(table, columns, rows, train)


def list_rows(
    table: Table, columns: Columns, rows: Sequence[int] | None = None, train: Sequence[int] | None = None
) -> Listing:
    """Rows of a table as records.

    Args:
        table: to read.
        columns: what they are called.
        rows: which rows; all unless given.
        train: rows whose labels number the classes; all unless given.

    Raises:
        DataError: a cell of another kind, or a path that leaves the table's folder.
        ConfigError: columns that it does not have.
    """
    label_column = _column(table, columns.label, _LABEL_COLUMNS, "label")
    image_column = _column(table, columns.path, _PATH_COLUMNS, "path")
    images, labels = table.read(image_column), _labels(table, label_column)
    groups = None if columns.group is None else table.read(_column(table, columns.group, (), "group"))
    records = []
    for row in range(len(images)) if rows is None else rows:
        where = f"{table.name}, row {row + 1}"
        content, problem = _content(images[row], table, where)
        group = None if groups is None or groups[row] in (None, "") else str(groups[row])
        if labels[row] is None:
            problem = problem or "has no label"
        if groups is not None and group is None:
            problem = problem or "has no group"
        name = str(content) if isinstance(content, Path) else where
        records.append(Listed(name, content, labels[row], group, problem))
    numbering = labels if train is None else [labels[row] for row in train]
    return Listing(
        table.name,
        tuple(records),
        known_classes=table.class_names.get(label_column),
        train_labels=tuple(label for label in numbering if label is not None),
        unit="records",
    )


def open_table(path: Path) -> Table:
    """A CSV or Parquet file, by its name.

    Raises:
        DataError: no such file, or not one that can be read.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file; {near_names(path)}check the path")
    if path.suffix.lower() == ".csv":
        return _open_csv(path)
    from datalens.data.arrow import open_parquet

    return open_parquet(path)


def class_names_of(features: object) -> dict[str, tuple[str, ...]]:
    """From the features that `datasets` writes beside its columns: the names of each ``ClassLabel``.

    >>> class_names_of({"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}, "image": {"_type": "Image"}})
    {'label': ('cat', 'dog')}
    """
    found = {}
    for column, feature in features.items() if isinstance(features, dict) else ():
        names = feature.get("names") if isinstance(feature, dict) else None
        if isinstance(names, list) and feature.get("_type") == "ClassLabel":
            found[column] = tuple(str(name) for name in names)
    return found


def _open_csv(path: Path) -> Table:
    """A CSV file: UTF-8 with or without a byte order mark, commas, names in the first line."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            names = next(reader, [])
            rows = []
            for row in reader:
                if row and len(row) != len(names):
                    raise DataError(
                        f"{path}, line {reader.line_num}: has {len(row)} cells, but the first line names "
                        f"{len(names)} columns; give one cell a column, in quotes where it holds a comma"
                    )
                rows += [row] if row else []
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: not a readable CSV file ({reason!a:.160}); save it as UTF-8") from error
    if len(set(names)) < len(names) or not names:
        raise DataError(
            f"{path}: its first line must name each column once, but says {_list(names)}; mend it"
        )
    place = {name: position for position, name in enumerate(names)}
    return Table(str(path), path.parent, tuple(names), lambda name: [row[place[name]] for row in rows])


def _column(table: Table, wanted: str | None, usual: tuple[str, ...], what: str) -> str:
    """The one column that holds paths, labels or groups."""
    option = f"--{what}-column (in Python {what}_column)"
    if wanted is not None:
        if wanted not in table.columns:
            raise ConfigError(
                f"{option} {wanted!a:.60}: {table.name} has the columns {_list(table.columns)}; give one of them"
            )
        return wanted
    found = [name for name in usual if name in table.columns]
    if len(found) != 1:
        which = f"{' and '.join(found)} may all be meant" if found else f"none is called {' or '.join(usual)}"
        raise ConfigError(f"{table.name}: has the columns {_list(table.columns)}, and {which}; give {option}")
    return found[0]


def _content(cell: Any, table: Table, where: str) -> tuple[Path | bytes, str | None]:
    """What a cell holds or points to, and what is wrong with that already."""
    if isinstance(cell, dict) and set(cell) <= {"bytes", "path"}:
        cell = cell.get("path") if cell.get("bytes") is None else cell["bytes"]
    if isinstance(cell, bytes):
        return cell, None
    if cell is None or cell == "":
        return b"", "names no image"
    if not isinstance(cell, str):
        raise DataError(
            f"{where}: an image is {type(cell).__name__}, but must be a path or the bytes of a PNG or JPEG file; "
            "give --path-column (in Python path_column)"
        )
    if not os.path.isabs(cell) and os.path.normpath(cell).split(os.sep)[0] == os.pardir:
        raise DataError(
            f"{where}: {cell!a:.60} leaves the table's folder; move the images below it, or give absolute paths"
        )
    return table.folder / cell, None


def _labels(table: Table, column: str) -> list[Any]:
    """The labels of every row, None where there is none; numbers that are written as text are numbers."""
    labels = [None if value == "" else value for value in table.read(column)]
    names = table.class_names.get(column)
    if names is not None:
        return [_named(label, names, f"{table.name}, row {row + 1}") for row, label in enumerate(labels)]
    texts = [label for label in labels if label is not None]
    if all(isinstance(text, str) and _WHOLE.fullmatch(text) for text in texts):
        return [None if label is None else int(label) for label in labels]
    return labels


def _named(label: Any, names: tuple[str, ...], where: str) -> str | None:
    """The class name of a number, -1 standing for none."""
    if label is None or label == -1:
        return None
    if not isinstance(label, int) or not 0 <= label < len(names):
        raise DataError(
            f"{where}: label {label!a:.60} is none of the {len(names)} classes that the file names; mend it"
        )
    return names[label]


def _splits_of(table: Table) -> list[Any]:
    """The split of every row."""
    splits = list(table.read(SPLIT_COLUMN))
    known = (*SPLITS, UNUSED_SPLIT)
    for row, split in enumerate(splits):
        if split not in known:
            raise DataError(
                f"{table.name}, row {row + 1}: its split is {split!a:.60}, but must be {', '.join(known)}; mend it"
            )
    return splits


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(f"{name!a:.40}" for name in names[:_SHOWN])
    return (shown + (", ..." if len(names) > _SHOWN else "")) or "nothing"
