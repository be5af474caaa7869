"""Tables of images: which column is which, paths that stay at home, splits, groups, and what can't be used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own_sources import pictures, png, write_csv, write_files

from datalens.data import Columns, LabelledImages, available_splits, check, group_id, load
from datalens.errors import ConfigError, DataError

LABELS = ["b", "a", "b", "a"]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return write_files(tmp_path, pictures(4))


def table(
    tmp_path: Path, files: list[str], labels: list[Any] | None = None, header: str = "path,label"
) -> Path:
    rows = [list(row) for row in zip(files, labels or LABELS, strict=True)]
    return write_csv(tmp_path / "people.csv", header.split(","), rows)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("header", ["path,label", "file,class", "file_name,label", "image,class"])
def test_the_usual_names_are_found_with_or_without_a_byte_order_mark(
    tmp_path: Path, files: list[str], encoding: str, header: str
) -> None:
    rows = [list(row) for row in zip(files, LABELS, strict=True)]
    data = load(write_csv(tmp_path / "t.csv", header.split(","), rows, encoding))
    assert (data.classes, data.labels.tolist()) == (("a", "b"), [1, 0, 1, 0])
    np.testing.assert_array_equal(data.images[:, 0], pictures(4))


def test_other_names_are_given(tmp_path: Path, files: list[str]) -> None:
    path = table(tmp_path, files, header="scan,finding")
    with pytest.raises(
        ConfigError, match=r"columns 'scan', 'finding', and none is called label or class; give --label"
    ):
        load(path)
    with pytest.raises(
        ConfigError, match="none is called path or file or file_name or image; give --path-column"
    ):
        load(path, label_column="finding")
    assert load(path, label_column="finding", path_column="scan").num_records == 4
    with pytest.raises(ConfigError, match=r"--label-column .* 'age': .* has the columns 'scan', 'finding'"):
        load(path, label_column="age", path_column="scan")
    assert len(check(path, columns=Columns("scan", "finding"))) == 4


def test_two_columns_that_may_both_be_meant_are_asked_about(tmp_path: Path, files: list[str]) -> None:
    rows = [[name, name, "a"] for name in files]
    path = write_csv(tmp_path / "t.csv", ["path", "image", "label"], rows)
    with pytest.raises(ConfigError, match="path and image may all be meant; give --path-column"):
        load(path)
    assert load(path, path_column="image").num_records == 4


def test_paths_stay_in_the_folder_of_the_table_unless_they_are_absolute(
    tmp_path: Path, files: list[str]
) -> None:
    (tmp_path / "deep").mkdir()
    rows = [["../scans/0.png", "a"]]
    outside = write_csv(tmp_path / "deep" / "t.csv", ["path", "label"], rows)
    with pytest.raises(DataError, match=r"row 1: '\.\./scans/0\.png' leaves the table's folder"):
        load(outside)
    absolute = [[str(tmp_path / name), "a"] for name in files]
    assert load(write_csv(tmp_path / "deep" / "t.csv", ["path", "label"], absolute)).num_records == 4
    inside = [["deep/../scans/0.png", "a"]]
    assert load(write_csv(tmp_path / "t.csv", ["path", "label"], inside)).num_records == 1


def test_a_split_column_parts_the_rows_and_train_numbers_the_classes(
    tmp_path: Path, files: list[str]
) -> None:
    splits = ["train", "test", "train", "validation"]
    rows = [list(row) for row in zip(files, ["9", "10", "10", "7"], splits, strict=True)]
    path = write_csv(tmp_path / "t.csv", ["path", "label", "split"], rows)
    assert available_splits(path) == ("train", "test")
    train, test = load(path), load(path, split="test")
    assert (train.classes, train.labels.tolist()) == (("9", "10"), [0, 1])
    assert (test.classes, test.labels.tolist(), test.classes_from_data) == (("9", "10"), [1], True)
    np.testing.assert_array_equal(test.images[0, 0], pictures(4)[1])
    assert [file.status for file in check(path)] == ["ok"] * 3
    write_csv(path, ["path", "label", "split"], [[*row[:2], "validation"] for row in rows])
    with pytest.raises(DataError, match="says neither train nor test"):
        check(path)
    rows[0][2] = "Train"
    write_csv(path, ["path", "label", "split"], rows)
    with pytest.raises(DataError, match="row 1: its split is 'Train', but must be train, test, validation"):
        load(path)
    with pytest.raises(DataError, match="has no test split; add a column 'split'"):
        load(table(tmp_path, files), split="test")


@pytest.mark.parametrize(
    ("labels", "classes", "numbers"),
    [
        (["10", "9", "9", "2"], ("2", "9", "10"), [2, 1, 1, 0]),
        (["07", "7", "7", "x"], ("07", "7", "x"), [0, 1, 1, 2]),
        (["a b", "Fähre", "a b", "a b"], ("Fähre", "a b"), [1, 0, 1, 1]),
        (["1.0", "0.0", "1.0", "1.0"], ("0.0", "1.0"), [1, 0, 1, 1]),
        (["z", "z", "z", "z"], ("z",), [0, 0, 0, 0]),
    ],
)
def test_labels_of_any_kind(
    tmp_path: Path, files: list[str], labels: list[str], classes: tuple[str, ...], numbers: list[int]
) -> None:
    data = load(table(tmp_path, files, labels))
    assert sorted(data.classes) == sorted(classes)
    assert [data.classes[label] for label in data.labels] == labels
    if numbers and data.classes == classes:
        assert data.labels.tolist() == numbers


def test_many_classes(tmp_path: Path) -> None:
    files = write_files(tmp_path, pictures(60))
    data = load(table(tmp_path, files, [str(number * 7) for number in range(60)]))
    assert data.labels.tolist() == list(range(60))


def test_labels_that_no_class_may_have_are_refused(tmp_path: Path, files: list[str]) -> None:
    with pytest.raises(DataError, match="y holds -1, but labels start at 0"):
        load(table(tmp_path, files, ["-1", "0", "0", "0"]))
    with pytest.raises(DataError, match="'b' is not a declared class; add it to --classes"):
        load(table(tmp_path, files), classes=["a"])


def test_groups_are_numbers_of_their_names_alone(tmp_path: Path, files: list[str]) -> None:
    people = ["ann", "bob", "ann", "7"]
    rows = [list(row) for row in zip(files, LABELS, people, strict=True)]
    path = write_csv(tmp_path / "t.csv", ["path", "label", "who"], rows)
    data = load(path, group_column="who")
    assert data.group_ids is not None
    assert data.group_ids.tolist() == [group_id(name) for name in people]
    assert load(path).group_ids is None
    rows[1][2] = ""
    with pytest.raises(DataError, match=r"1 of 4 records can't be used: .*1\.png \(has no group\)"):
        load(write_csv(path, ["path", "label", "who"], rows), group_column="who")


def damage(tmp_path: Path, files: list[str]) -> Path:
    """Of six rows: the first cut off, the second not there, the third without a label."""
    (tmp_path / files[0]).write_bytes((tmp_path / files[0]).read_bytes()[:-1])
    rows = [
        [files[0], "b"],
        ["scans/none.png", "a"],
        [files[1], ""],
        [files[2], "a"],
        ["", "a"],
        [files[3], "b"],
    ]
    return write_csv(tmp_path / "t.csv", ["path", "label"], rows)


def test_what_cannot_be_used_is_named_and_left_out_on_request(tmp_path: Path, files: list[str]) -> None:
    path = damage(tmp_path, files)
    with pytest.raises(DataError) as caught:
        load(path)
    for part in (
        "4 of 6 records can't be used",
        "cut off at byte",
        "(no such file)",
        "(has no label)",
        "row 5 (names no",
    ):
        assert part in str(caught.value)
    data = load(path, skip_damaged=True)
    assert data.positions is not None
    assert (data.positions.tolist(), data.num_listed, data.num_records) == ([3, 5], 6, 2)
    np.testing.assert_array_equal(data.images[:, 0], pictures(4)[2:])
    assert data.labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "first line must name each column once, but says nothing"),
        (b"path,path\n", "first line must name each column once"),
        (b"path,label\n", "has no labelled record"),
        (b"path,label\na,b,c\n", "line 2: has 3 cells, but the first line names 2 columns"),
        (b'path,label\n"a,b\n', "not a readable CSV file"),
        (b"path,label\n\xff,b\n", "not a readable CSV file"),
        (b"path,label\na\0b,b\n", "can't be used|not a readable CSV"),
    ],
)
def test_broken_tables_are_refused_in_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        load(tmp_path / "t.csv")
    assert str(caught.value).isprintable()


def parquet(path: Path, columns: dict[str, Any]) -> Path:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(columns), path)
    return path


@pytest.mark.parametrize("form", ["struct", "bytes", "path", "struct with a path"])
def test_parquet_holds_images_or_paths(tmp_path: Path, files: list[str], form: str) -> None:
    cells: dict[str, list[Any]] = {
        "struct": [{"bytes": png(array), "path": "x.png"} for array in pictures(4)],
        "bytes": [png(array) for array in pictures(4)],
        "path": list(files),
        "struct with a path": [{"bytes": None, "path": name} for name in files],
    }
    data = load(parquet(tmp_path / "t.parquet", {"image": cells[form], "label": LABELS}))
    assert (data.labels.tolist(), data.name) == ([1, 0, 1, 0], str(tmp_path / "t.parquet"))
    np.testing.assert_array_equal(data.images[:, 0], pictures(4))


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([3, 9, 3, 9], ("3", "9")),
        ([3.0, 9.0, 3.0, 9.0], ("3", "9")),
        ([True, False, True, False], ("0", "1")),
        (["3", "9", "3", "9"], ("3", "9")),
        ([[0, 1], [1, 0], [0, 1], [1, 0]], ("0", "1")),
    ],
)
def test_parquet_labels(
    tmp_path: Path, files: list[str], labels: list[Any], classes: tuple[str, ...]
) -> None:
    assert load(parquet(tmp_path / "t.parquet", {"path": files, "label": labels})).classes == classes


def test_parquet_labels_and_images_of_other_kinds_are_refused(tmp_path: Path, files: list[str]) -> None:
    with pytest.raises(DataError, match=r"y holds 0\.5, but labels must be whole"):
        load(parquet(tmp_path / "t.parquet", {"path": files, "label": [0.5, 1, 1, 1]}))
    with pytest.raises(DataError, match="row 1: an image is int, but must be a path or the bytes"):
        load(parquet(tmp_path / "t.parquet", {"path": [1, 2], "label": [0, 1]}))
    with pytest.raises(DataError, match=r"1 of 2 records can't be used: .*, row 2 \(not an image"):
        load(parquet(tmp_path / "t.parquet", {"path": [png(pictures(1)[0]), b"no"], "label": [0, 1]}))


def test_a_damaged_parquet_file_is_refused_in_one_line(tmp_path: Path, files: list[str]) -> None:
    path = parquet(tmp_path / "t.parquet", {"path": files, "label": LABELS})
    whole = path.read_bytes()
    for content in (b"", whole[:40], whole[:-5], b"PAR1" * 20):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"t\.parquet: can't be read") as caught:
            load(path)
        assert str(caught.value).isprintable()


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "t.parquet").write_bytes(b"")
    with pytest.raises(DataError, match=r"needs pyarrow.*pip install 'datalens-dp\[parquet\]'"):
        load(tmp_path / "t.parquet")


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("")
    with pytest.raises(DataError, match=r"people2\.csv: no such file; did you mean '.*people\.csv'"):
        load(tmp_path / "people2.csv")


def test_the_result_is_what_every_part_expects(tmp_path: Path, files: list[str]) -> None:
    data = load(table(tmp_path, files))
    assert isinstance(data, LabelledImages)
    assert (data.images.dtype, data.labels.dtype) == (np.uint8, np.int64)
