"""Tables in Arrow's forms, read by pyarrow: Parquet files, and the streams that `datasets` saves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from datalens.data.table import Table, class_names_of
from datalens.errors import DataError


def open_parquet(path: Path) -> Table:
    """A Parquet file.

    Raises:
        DataError: not one, damaged, or pyarrow is not installed.
    """
    with _readable(path):
        from pyarrow import parquet

        schema = parquet.read_schema(path)
        beside = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        names = tuple(schema.names)
    features = beside.get("info", {}).get("features") if isinstance(beside, dict) else None

    def read(name: str) -> list[Any]:
        with _readable(path), parquet.ParquetFile(path) as file:
            return file.read(columns=[name]).column(name).to_pylist()

    return _table(path, path.parent, names, read, class_names_of(features))


def open_streams(folder: Path, files: Sequence[Path], features: object) -> Table:
    """Files of one table, each a stream of record batches, one after the other.

    Raises:
        DataError: not such files, damaged, or pyarrow is not installed.
    """
    with _readable(folder):
        import pyarrow

        parts = []
        for path in files:
            with pyarrow.memory_map(str(path)) as file:
                parts.append(pyarrow.ipc.open_stream(file).read_all())
        table = pyarrow.concat_tables(parts)
    return _table(
        folder,
        folder,
        tuple(table.column_names),
        lambda name: table.column(name).to_pylist(),
        class_names_of(features),
    )


def _table(
    path: Path,
    folder: Path,
    columns: tuple[str, ...],
    read: Callable[[str], Sequence[Any]],
    class_names: dict[str, tuple[str, ...]],
) -> Table:
    if len(set(columns)) < len(columns) or not columns:
        raise DataError(f"{path}: must name each column once, but does not; save it again")
    return Table(str(path), folder, columns, read, class_names)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Whatever pyarrow says of a file is one line about it.

    Raises:
        DataError: says what to do.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise DataError(
            f"{path}: reading it needs pyarrow, which is not installed; run: pip install 'datalens-dp[parquet]'"
        ) from error
    except (
        OSError,
        ValueError,
        LookupError,
        NotImplementedError,
        TypeError,
    ) as error:  # pyarrow's are among these
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: can't be read ({reason!a:.160}); save it again") from error
