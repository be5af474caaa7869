"""What Hugging Face `datasets` saved is read as that library reads it, and nothing asks a network."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own_sources import NAMES, label_of, pictures, png, write_saved
from PIL import Image

from datalens.data import available_splits, load
from datalens.errors import DataError

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def rows(count: int, labels: list[int] | None = None) -> Any:
    cells = [{"bytes": png(array), "path": None} for array in pictures(count)]
    return pyarrow.table({"image": cells, "label": labels or [label_of(number) for number in range(count)]})


def test_a_saved_dataset(tmp_path: Path) -> None:
    data = load(write_saved(tmp_path / "d", rows(4), names=("cat", "dog", "fish")))
    assert (data.classes, data.labels.tolist(), data.classes_from_data) == (
        ("cat", "dog", "fish"),
        [0, 1, 0, 1],
        True,
    )
    np.testing.assert_array_equal(data.images[:, 0], pictures(4))
    assert available_splits(tmp_path / "d") == ("train",)


def test_a_dict_of_splits(tmp_path: Path) -> None:
    write_saved(tmp_path / "d/train", rows(4))
    write_saved(tmp_path / "d/test", rows(2))
    (tmp_path / "d/dataset_dict.json").write_text(json.dumps({"splits": ["train", "test", "extra"]}))
    assert available_splits(tmp_path / "d") == ("train", "test")
    assert load(tmp_path / "d", split="test").num_records == 2
    (tmp_path / "d/dataset_dict.json").write_text(json.dumps({"splits": ["extra"]}))
    with pytest.raises(DataError, match="neither a train nor a test split"):
        available_splits(tmp_path / "d")
    (tmp_path / "d/dataset_dict.json").write_text(json.dumps({"splits": ["train"]}))
    with pytest.raises(DataError, match="has no test split; save a DatasetDict"):
        load(tmp_path / "d", split="test")


def test_a_label_that_is_unknown_or_strange(tmp_path: Path) -> None:
    saved = write_saved(tmp_path / "d", rows(3, [0, -1, 1]))
    with pytest.raises(DataError, match=r"1 of 3 records can't be used: .*row 2 \(has no label\)"):
        load(saved)
    data = load(saved, skip_damaged=True)
    assert data.positions is not None
    assert data.positions.tolist() == [0, 2]
    with pytest.raises(DataError, match="row 3: label 2 is none of the 2 classes"):
        load(write_saved(tmp_path / "e", rows(3, [0, 1, 2])))


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("state.json", b"{", "can't be read"),
        ("state.json", b"[]", "is not what datasets writes"),
        ("state.json", b"{}", "names no data files"),
        (
            "state.json",
            b'{"_data_files": [{"filename": "../x.arrow"}]}',
            "names no data files of this folder",
        ),
        ("state.json", b'{"_data_files": [{"filename": "gone.arrow"}]}', "can't be read"),
        ("dataset_info.json", b"\xff", "can't be read"),
        ("data-00000-of-00001.arrow", b"", "can't be read"),
        ("data-00000-of-00001.arrow", b"no stream at all", "can't be read"),
    ],
)
def test_damaged_folders_are_refused_in_one_line(
    tmp_path: Path, file: str, content: bytes, message: str
) -> None:
    saved = write_saved(tmp_path / "d", rows(3))
    (saved / file).write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        load(saved)
    assert str(caught.value).isprintable()


def test_what_the_library_itself_saves(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="the library datasets is not installed")
    datasets.disable_progress_bars()
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=list(NAMES))})
    content = {
        "image": [Image.fromarray(array) for array in pictures(6)],
        "label": [label_of(number) for number in range(6)],
    }
    made = datasets.Dataset.from_dict(content, features=features)
    made.save_to_disk(tmp_path / "one", num_shards=2)
    datasets.DatasetDict({"train": made, "test": made.select([4, 1])}).save_to_disk(tmp_path / "both")
    made.to_parquet(tmp_path / "one.parquet")
    for source in ("one", "both", "one.parquet"):
        data = load(tmp_path / source)
        np.testing.assert_array_equal(data.images[:, 0], pictures(6))
        assert (data.classes, data.labels.tolist()) == (NAMES, [0, 1, 0, 1, 0, 1])
    test = load(tmp_path / "both", split="test")
    np.testing.assert_array_equal(test.images[:, 0], [pictures(6)[4], pictures(6)[1]])
