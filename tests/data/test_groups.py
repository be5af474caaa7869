"""Numbers of groups come from one name alone, whatever other names there are, and in whatever order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datalens.data import LabelledImages, find_exact_duplicates, group_ids_of, load
from datalens.errors import ConfigError, DataError

GOLDEN = [5505941609454543594, 6673917895667664685]


@given(st.lists(st.text(min_size=1), min_size=1, max_size=20))
def test_ids_follow_names_in_any_order_and_company(names: list[str]) -> None:
    names = [name.replace("\0", "0") for name in names]  # NumPy's text ends there
    alone = [int(group_ids_of([name])[0]) for name in names]
    assert group_ids_of(names).tolist() == alone
    assert group_ids_of(names[::-1]).tolist() == alone[::-1]
    assert min(alone) >= 0
    assert len(set(alone)) == len(set(names))


@pytest.mark.parametrize(
    "names",
    [
        np.array([7, 12]),
        np.array([7, 12], np.uint8),
        ["7", "12"],
        np.array([b"7", b"12"]),
        np.array([["7"], ["12"]]),
        np.array([7, "12"], object),
    ],
    ids=["int64", "uint8", "text", "bytes", "column", "objects"],
)
def test_a_number_and_its_text_are_one_name(names: object) -> None:
    assert group_ids_of(names).tolist() == group_ids_of(["7", "12"]).tolist()  # pyright: ignore[reportArgumentType]


def test_an_id_is_fixed_for_good() -> None:
    """A run that is resumed by a later version must find the same groups."""
    assert group_ids_of(["ann", "7"]).tolist() == GOLDEN


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a", ""], "record 1 has an empty group"),
        ([1.5, 2.0], "float64"),
        (["a", None], "None"),
        (np.array([True, False]), "bool"),
        (np.zeros((2, 2), int), r"\(2, 2\)"),
        (np.array([b"\xff"]), "UTF-8"),
        ([["a"], ["b", "c"]], "no plain list"),
    ],
)
def test_other_names_are_refused_in_one_line(names: object, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        group_ids_of(names, "scans")  # pyright: ignore[reportArgumentType]
    assert "scans" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_with_groups_needs_one_name_a_record() -> None:
    data = LabelledImages(np.zeros((3, 1, 4, 4), np.uint8), np.zeros(3, np.int64), ("a",), "d", public=False)
    assert data.with_groups(["x", "y", "x"]).group_ids is not None
    with pytest.raises(DataError, match="group_ids"):
        data.with_groups(["x", "y"])


@pytest.fixture
def npz(tmp_path: Path) -> Path:
    path = tmp_path / "scans.npz"
    images = np.zeros((4, 8, 8), np.uint8)
    np.savez(path, x=images, y=np.array([0, 1, 0, 1]), patient=np.array(["p", "q", "p", "r"]))
    return path


def test_an_array_of_an_npz_file_names_the_groups(npz: Path) -> None:
    data = load(npz, group_column="patient", classes=2)
    assert data.group_ids is not None
    assert data.group_ids.tolist() == group_ids_of(["p", "q", "p", "r"]).tolist()
    assert load(npz, classes=2).group_ids is None
    with pytest.raises(DataError, match=r"--group-column doctor.*patient"):
        load(npz, group_column="doctor")


def test_sources_without_columns_refuse_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--group-column patient.*no columns.*\.npz"):
        load("shapes", group_column="patient")
    (tmp_path / "a").mkdir()
    with pytest.raises(ConfigError, match="no columns"):
        load(tmp_path, group_column="patient")


def test_copies_within_a_group_are_one() -> None:
    images = np.array([[1], [1], [1], [2]], np.uint8)
    report = find_exact_duplicates(images, np.array([5, 5, 6, 6]))
    assert (report.num_records, report.num_copied, report.largest_group) == (3, 1, 2)
