"""Places365: three classes of listed categories, evenly taken, and the official validation pictures as test."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_colour import write_places

from datalens.data import check, fetch, load, places365
from datalens.data.places365 import CLASSES, MEMBERS, evenly
from datalens.errors import DataError

SIZES = [len(members) for members in MEMBERS.values()]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_places(tmp_path_factory.mktemp("root"))


def test_each_picture_has_the_class_of_its_category_and_other_categories_are_left_out(root: Path) -> None:
    for split, each in (("train", 2), ("test", 1)):
        data = load("places365", split=split, root=root)
        assert (data.classes, data.image_shape, data.public) == (CLASSES, (3, 64, 64), True)
        assert np.bincount(data.labels).tolist() == [size * each for size in SIZES]
        names = sorted(f"/{name[0]}/{name}" for members in MEMBERS.values() for name in members)
        greys = np.rint(data.images.mean(axis=(1, 2, 3)) / 5).astype(int) - 1  # after /a/airfield
        owner = {name: label for label, members in enumerate(MEMBERS.values()) for name in members}
        assert [owner[names[grey].split("/", 2)[2]] for grey in greys] == data.labels.tolist()


def test_the_renamed_folder_of_torchvision_serves_as_well(root: Path, tmp_path: Path) -> None:
    own = write_places(tmp_path) / "places365"
    (own / "data_256").rename(own / "data_256_standard")
    assert np.array_equal(load("places365", root=tmp_path).images, load("places365", root=root).images)


def test_a_class_has_at_most_so_many_pictures(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places365, "A_CLASS", 14)
    data = load("places365", root=root)
    assert np.bincount(data.labels).tolist() == [14, 14, 14]


def test_members_are_of_one_class_alone() -> None:
    everyone = [name for members in MEMBERS.values() for name in members]
    assert len(everyone) == len(set(everyone)) and len(MEMBERS) == len(CLASSES) == 3
    assert min(SIZES) * 5000 >= places365.A_CLASS, "enough pictures in every class"


@given(st.lists(st.integers(0, 5), max_size=60), st.integers(1, 20))
def test_taking_is_even_and_first_come_first(listed: list[int], most: int) -> None:
    categories = np.array(listed, np.int64)
    labels = categories // 3
    taken = evenly(categories, labels, most)
    assert taken.tolist() == sorted(set(taken.tolist()))
    for label in np.unique(labels):
        sizes = np.bincount(categories[labels == label], minlength=6)
        counts = np.bincount(categories[taken][labels[taken] == label], minlength=6)
        assert counts.sum() == min(most, sizes.sum())
        for category in np.unique(categories[labels == label]):
            places = np.flatnonzero(categories == category)
            assert set(places[: counts[category]]) <= set(taken), "the first of each"
            assert counts[category] == sizes[category] or counts.max() - counts[category] <= 1, "even"


def test_what_is_missing_is_said_in_one_line(tmp_path: Path) -> None:
    line = rf"get filelist_places365-standard.tar.*Places project.*put them into {tmp_path}/places365$"
    with pytest.raises(DataError, match=rf"places365: categories_places365.txt is not in .*; {line}"):
        load("places365", root=tmp_path)
    with pytest.raises(DataError, match=rf"places365: can't be fetched.*{line}"):
        fetch("places365", tmp_path)
    assert {found.status for found in check("places365", tmp_path)} == {"missing"}


def test_a_whole_set_passes_the_check_and_a_lost_picture_does_not(tmp_path: Path) -> None:
    root = write_places(tmp_path)
    assert {found.status for found in check("places365", root)} == {"ok"}
    (root / "places365" / "val_256" / "Places365_val_00000003.jpg").unlink()
    (found,) = [found for found in check("places365", root) if found.status != "ok"]
    assert found.file == "pictures (test)" and "1 of 37 are not in" in (found.found or "")


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("categories_places365.txt", "/b/beach", "/b/beech", "does not name /b/beach"),
        (
            "places365_train_standard.txt",
            "/00000001.jpg 0",
            "/00000001.jpg",
            "line 1 is no name with a number",
        ),
        ("places365_train_standard.txt", "/a/", "/\xe4/", "can't be read as text"),
    ],
)
def test_a_damaged_list_is_refused(tmp_path: Path, file: str, old: str, new: str, message: str) -> None:
    path = write_places(tmp_path) / "places365" / file
    assert old in path.read_text()
    path.write_bytes(path.read_text().replace(old, new, 1).encode("latin-1"))
    with pytest.raises(DataError, match=rf"{file}: .*{message}.*get the file again"):
        load("places365", root=tmp_path)


def test_a_picture_of_another_size_is_refused(tmp_path: Path) -> None:
    from PIL import Image

    path = write_places(tmp_path) / "places365" / "data_256" / "b" / "beach" / "00000001.jpg"
    Image.new("RGB", (512, 300)).save(path)
    with pytest.raises(
        DataError, match=r"beach/00000001.jpg: .*is 512x300 pixels, but small ones are 256x256"
    ):
        load("places365", root=tmp_path)


def test_lists_without_any_of_the_classes_are_refused(tmp_path: Path) -> None:
    root = write_places(tmp_path)
    (root / "places365" / "places365_val.txt").write_text("Places365_val_00000001.jpg 0\n")
    with pytest.raises(DataError, match=r"the test split of .* has no image of its classes"):
        load("places365", split="test", root=root)
