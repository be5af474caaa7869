"""Image folders: read in one order, scanned first, and no file skipped without a word (R61)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from datalens.data import available_splits, check, load
from datalens.errors import ConfigError, DataError


def draw(path: Path, value: int = 200, size: tuple[int, int] = (16, 15), mode: str = "L") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(value).integers(0, 40, (size[1], size[0]), dtype=np.uint8) + np.uint8(value)
    Image.fromarray(noise).convert(mode).save(path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for position, name in enumerate(["cat/1.png", "cat/2.png", "dog/1.png", "dog/deeper/2.PNG"]):
        draw(tmp_path / name, 10 * position)
    draw(tmp_path / "dog/3.jpg", 90)
    return tmp_path


def test_reads_every_image_under_its_class(folder: Path) -> None:
    data = load(folder)
    assert data.images.shape == (5, 1, 15, 16)
    assert (data.classes, data.labels.tolist()) == (("cat", "dog"), [0, 0, 1, 1, 1])
    assert (data.public, data.classes_from_data, data.notes) == (False, True, ())
    with Image.open(folder / "cat/2.png") as image:
        np.testing.assert_array_equal(data.images[1, 0], np.asarray(image))


def test_numbered_classes_are_in_numeric_order(tmp_path: Path) -> None:
    for name in ("10", "9", "2"):
        draw(tmp_path / name / "a.png", int(name))
    assert load(tmp_path).classes == ("2", "9", "10")


def test_declared_classes_are_public_and_may_be_empty(folder: Path) -> None:
    data = load(folder, classes=["fish", "dog", "cat"])
    assert (data.labels.tolist(), data.classes_from_data) == ([2, 2, 1, 1, 1], False)
    with pytest.raises(DataError, match="'dog' is not a declared class"):
        load(folder, classes=["cat"])


def test_damaged_files_are_found_by_the_scan_r61(folder: Path) -> None:
    for name, kind in (("cut.png", "png"), ("cut.jpg", "jpg")):
        whole = draw(folder / "cat" / name, 50).read_bytes()
        (folder / "cat" / name).write_bytes(whole[:-1])
        assert kind in name
    flipped = bytearray(draw(folder / "cat/flipped.png", 60).read_bytes())
    flipped[45] ^= 1
    (folder / "cat/flipped.png").write_bytes(flipped)
    (folder / "cat/empty.png").write_bytes(b"")
    (folder / "cat/text.jpg").write_text("not a picture")
    damaged = ["cut.jpg", "cut.png", "empty.png", "flipped.png", "text.jpg"]
    with pytest.raises(DataError, match="5 of 10 files can't be used") as caught:
        load(folder)
    assert all(str(folder / "cat" / name) in str(caught.value) for name in damaged)
    assert "\n" not in str(caught.value)
    found = {Path(result.file).name for result in check(folder) if result.status == "damaged"}
    assert found == set(damaged)
    data = load(folder, skip_damaged=True)
    assert (data.num_records, data.num_listed) == (5, 10)
    assert data.positions is not None
    assert data.positions.tolist() == [0, 1, 7, 8, 9]
    assert data.notes[0].startswith("5 damaged files left out, their places stay empty: ")


def test_a_stray_file_is_reported_and_hidden_ones_are_not_looked_at(folder: Path) -> None:
    (folder / ".DS_Store").write_bytes(b"x")
    (folder / "cat/.thumb.png").write_bytes(b"x")
    assert load(folder).num_records == 5
    (folder / "cat/notes.txt").write_text("x")
    with pytest.raises(DataError, match=r"notes\.txt \(neither PNG nor JPEG\)"):
        load(folder)


def test_an_image_outside_the_classes_is_refused(folder: Path) -> None:
    draw(folder / "loose.png")
    with pytest.raises(DataError, match=r"loose\.png lies outside"):
        load(folder)


def test_sizes_must_agree_unless_declared(folder: Path) -> None:
    draw(folder / "dog/wide.png", 5, size=(19, 15))
    with pytest.raises(
        DataError, match=r"wide\.png: is 19x15.*16x15.*--image-size 15x16 .in Python image_size=.15, 16"
    ):
        load(folder)
    assert load(folder, image_size=8).images.shape == (6, 1, 8, 8)
    assert load(folder, image_size=(12, 8)).image_shape == (1, 12, 8)


def test_grey_and_colour_must_agree_unless_declared(folder: Path) -> None:
    draw(folder / "dog/rgb.png", 5, mode="RGB")
    with pytest.raises(DataError, match=r"3 channels.*--channels 1 .*channels=1"):
        load(folder)
    assert load(folder, channels=3).image_shape == (3, 15, 16)
    assert load(folder, channels=1).image_shape == (1, 15, 16)
    with pytest.raises(ConfigError, match="--channels 2"):
        load(folder, channels=2)


def test_splits_share_the_classes_of_train(tmp_path: Path) -> None:
    for position, name in enumerate(["train/a/1.png", "train/b/1.png", "test/b/1.png", "test/b/2.png"]):
        draw(tmp_path / name, position)
    assert available_splits(tmp_path) == ("train", "test")
    assert load(tmp_path).labels.tolist() == [0, 1]
    assert (load(tmp_path, split="test").labels.tolist(), load(tmp_path, split="test").classes) == (
        [1, 1],
        ("a", "b"),
    )
    draw(tmp_path / "test/c/1.png")
    with pytest.raises(DataError, match="'c' is not a declared class"):
        load(tmp_path, split="test")


def test_a_folder_without_sub_folders_is_one_class_with_a_public_name(tmp_path: Path) -> None:
    for number in range(3):
        draw(tmp_path / "flat" / f"{number}.png", number)
    data = load(tmp_path / "flat")
    assert (data.classes, data.labels.tolist(), data.classes_from_data) == (("image",), [0, 0, 0], False)
    assert load(tmp_path / "flat", classes=["scan"]).classes == ("scan",)
    with pytest.raises(DataError, match="its images are one class, but 2 classes are declared"):
        load(tmp_path / "flat", classes=["a", "b"])
    (tmp_path / "flat" / "notes.txt").write_text("x")
    with pytest.raises(DataError, match=r"notes\.txt .neither PNG nor JPEG"):
        load(tmp_path / "flat")


def test_flat_splits_must_both_be_flat(tmp_path: Path) -> None:
    draw(tmp_path / "train/1.png")
    draw(tmp_path / "test/a/1.png")
    assert load(tmp_path).classes == ("image",)
    with pytest.raises(DataError, match="must both hold a sub-folder for each class, or neither"):
        load(tmp_path, split="test")
    draw(tmp_path / "test/2.png")
    (tmp_path / "test/a/1.png").unlink()
    (tmp_path / "test/a").rmdir()
    assert load(tmp_path, split="test").num_records == 1


def test_a_class_that_only_a_damaged_file_has_keeps_its_number(folder: Path) -> None:
    draw(folder / "bee/1.png").write_bytes(b"")
    data = load(folder, skip_damaged=True)
    assert (data.classes, data.labels.tolist()) == (("bee", "cat", "dog"), [1, 1, 2, 2, 2])


@pytest.mark.parametrize(("width", "height", "fits"), [(8, 256, True), (7, 20, False), (20, 257, False)])
def test_sides_are_8_to_256_unless_scaled(tmp_path: Path, width: int, height: int, fits: bool) -> None:
    draw(tmp_path / "a/1.png", size=(width, height))
    if fits:
        assert load(tmp_path).image_shape == (1, height, width)
    else:
        with pytest.raises(DataError, match=f"is {width}x{height}, but sides must be 8 to 256.*--image-size"):
            load(tmp_path)
    assert load(tmp_path, image_size=32).image_shape == (1, 32, 32)
    for wrong in (7, 257, (8, 300)):
        with pytest.raises(ConfigError, match=r"--image-size .* from 8 to 256"):
            load(tmp_path, image_size=wrong)


def test_missing_split_and_empty_folders_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no test split"):
        load(folder, split="test")
    (tmp_path / "bare").mkdir()
    with pytest.raises(DataError, match="has no sub-folder and no image"):
        load(tmp_path / "bare")
    (tmp_path / "bare/cat").mkdir()
    with pytest.raises(DataError, match="holds no image"):
        load(tmp_path / "bare")
