"""Every layout, range and kind of label is read rightly or refused with its values shown (R53, R57)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from datalens.data import available_splits, load
from datalens.data.arrays import encode_labels, labelled_images
from datalens.errors import ConfigError, DataError

BYTES = np.random.default_rng(1).integers(0, 256, (6, 1, 9, 11), dtype=np.uint8)
LABELS = [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    "images", [BYTES, BYTES[:, 0], BYTES.transpose(0, 2, 3, 1)], ids=["NCHW", "NHW", "NHWC"]
)
def test_layouts_agree(images: np.ndarray) -> None:
    np.testing.assert_array_equal(labelled_images(images, LABELS).images, BYTES)


def test_colour_layouts_agree() -> None:
    images = np.random.default_rng(2).integers(0, 256, (6, 3, 5, 7), dtype=np.uint8)
    np.testing.assert_array_equal(labelled_images(images, LABELS).images, images)
    np.testing.assert_array_equal(labelled_images(images.transpose(0, 2, 3, 1), LABELS).images, images)


def test_an_ambiguous_layout_needs_a_declaration() -> None:
    images = np.random.default_rng(2).integers(0, 256, (6, 3, 9, 3), dtype=np.uint8)
    with pytest.raises(DataError, match=r"--layout .*NCHW or NHWC"):
        labelled_images(images, LABELS)
    assert labelled_images(images, LABELS, layout="NCHW").image_shape == (3, 9, 3)
    assert labelled_images(images, LABELS, layout="NHWC").image_shape == (3, 3, 9)


@pytest.mark.parametrize(
    ("images", "value_range"),
    [
        (BYTES / 255.0, (0, 1)),
        ((BYTES / 255.0).astype(np.float32), (0, 1)),
        (BYTES / 127.5 - 1.0, (-1, 1)),
        (BYTES.astype(np.float64), (0, 255)),
        (BYTES.astype(np.int64), (0, 255)),
        (BYTES, (0, 255)),
        (BYTES, None),
    ],
)
def test_declared_ranges_give_the_same_bytes_r57(images: np.ndarray, value_range: Any) -> None:
    np.testing.assert_array_equal(labelled_images(images, LABELS, value_range=value_range).images, BYTES)


def test_bool_is_black_and_white() -> None:
    np.testing.assert_array_equal(labelled_images(BYTES > 99, LABELS).images, (BYTES > 99) * np.uint8(255))


@pytest.mark.parametrize("images", [BYTES / 255.0, BYTES.astype(np.float32), BYTES.astype(np.int64)])
def test_undeclared_ranges_are_refused(images: np.ndarray) -> None:
    with pytest.raises(DataError, match=r"--value-range .*0\.\.1.*value_range=\(0, 1\)"):
        labelled_images(images, LABELS)


@pytest.mark.parametrize("bad", [1.5, -0.25, np.nan, np.inf])
def test_values_outside_the_declared_range_are_shown(bad: float) -> None:
    images = BYTES / 255.0
    images[3, 0, 2, 2] = bad
    with pytest.raises(DataError, match=f"x holds {bad:g}, outside"):
        labelled_images(images, LABELS, value_range=(0, 1))


@pytest.mark.parametrize("value_range", [(1, 0), (0, 0), (0, float("nan")), (0,), "01x"])
def test_senseless_ranges_are_refused(value_range: Any) -> None:
    with pytest.raises(ConfigError, match="value_range"):
        labelled_images(BYTES, LABELS, value_range=value_range)


@pytest.mark.parametrize(
    ("labels", "numbers", "names"),
    [
        (np.arange(1, 11), list(range(10)), [str(n) for n in range(1, 11)]),
        ([0, 5, 9, 5], [0, 1, 2, 1], ["0", "5", "9"]),
        ([10, 9, 2], [2, 1, 0], ["2", "9", "10"]),
        (np.array([3.0, 1.0]), [1, 0], ["1", "3"]),
        (np.array([[2], [0]]), [1, 0], ["0", "2"]),
        (np.array([[0, 1, 0], [1, 0, 0]]), [1, 0], ["0", "1", "2"]),
        (np.array([[0.0, 1.0], [1.0, 0.0]]), [1, 0], ["0", "1"]),
        (np.array(["dog", "cat", "dog"], "<U5"), [1, 0, 1], ["cat", "dog"]),
        (np.array([b"dog", b"cat"]), [1, 0], ["cat", "dog"]),
        (np.array(["dog", "cat"], object), [1, 0], ["cat", "dog"]),
        (np.array([True, False]), [1, 0], ["0", "1"]),
        (np.array([7, 7], np.uint8), [0, 0], ["7"]),
    ],
)
def test_labels_are_mapped_and_named_r53(labels: Any, numbers: list[int], names: list[str]) -> None:
    found, classes = encode_labels(labels, None, "y")
    assert found.dtype == np.int64
    assert found.tolist() == numbers
    assert list(classes) == names


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        ([0, -1, 3], "-1"),
        ([0.0, np.nan], "nan"),
        ([0.0, np.inf], "inf"),
        ([0.5, 1.0], "0.5"),
        (np.zeros((4, 3)), "not one-hot"),
        (np.ones((4, 3)), "not one-hot"),
        (np.zeros((2, 2, 2)), r"\(2, 2, 2\)"),
        (np.array([1 + 2j]), "complex"),
        (np.array([1, "a", None], object), "mixes types"),
        (["a", ""], "empty label"),
        ([[1, 2], [3]], "not an array"),
    ],
)
def test_labels_that_mean_nothing_are_refused_r53(labels: Any, shown: str) -> None:
    with pytest.raises(DataError, match=shown):
        encode_labels(labels, None, "y")


@pytest.mark.parametrize(
    ("labels", "classes", "numbers"),
    [
        (["b", "a"], ["b", "unused", "a"], [0, 2]),
        ([3, 1], 4, [3, 1]),
        ([9, 5], [9, 5, 0], [0, 1]),
        ([-1, 1], [-1, 1], [0, 1]),
        ([1, 0], ["cat", "dog"], [1, 0]),
        (np.eye(2), ["cat", "dog"], [0, 1]),
    ],
)
def test_declared_classes_rule(labels: Any, classes: Any, numbers: list[int]) -> None:
    found, names = encode_labels(labels, classes, "y")
    assert found.tolist() == numbers
    assert len(names) == (classes if isinstance(classes, int) else len(classes))


def test_the_class_list_is_marked_when_it_comes_from_the_data() -> None:
    assert labelled_images(BYTES, LABELS).classes_from_data
    assert not labelled_images(BYTES, LABELS, classes=3).classes_from_data


def test_a_declared_class_list_does_not_depend_on_the_data_r49() -> None:
    """Two data sets with other class ratios, one without any record of a class, have one class list."""
    many = labelled_images(BYTES, [0, 0, 0, 0, 0, 1], classes=3)
    few = labelled_images(BYTES, [1, 1, 1, 1, 1, 2], classes=3)
    assert many.classes == few.classes == ("0", "1", "2")


@pytest.mark.parametrize("labels", [["a", "x", "y"], ["x"]])
def test_an_undeclared_label_is_shown(labels: list[str]) -> None:
    with pytest.raises(DataError, match=r"y holds x.* declared classes a, b"):
        encode_labels(labels, ["a", "b"], "mine")


@pytest.mark.parametrize("classes", [[], ["a", "a"], [""], 0, "abc", True])
def test_senseless_declarations_are_refused(classes: Any) -> None:
    with pytest.raises(ConfigError, match="classes is"):
        encode_labels([0], classes, "y")


def test_npz(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    np.savez(path, x=BYTES, y=LABELS)
    data = load(path, classes=5)
    np.testing.assert_array_equal(data.images, BYTES)
    assert (data.public, data.num_classes, data.classes_from_data) == (False, 5, False)
    assert available_splits(path) == ("train",)
    assert load(path, image_size=16).image_shape == (1, 16, 16)
    assert load(path, public=True).public
    with pytest.raises(DataError, match="holds x, y, but the test split needs x_test and y_test"):
        load(path, split="test")


def test_npz_splits_share_one_numbering(tmp_path: Path) -> None:
    path = tmp_path / "split.npz"
    np.savez(path, x_train=BYTES, y_train=list("abcabc"), x_test=BYTES[:2], y_test=["c", "b"])
    assert available_splits(path) == ("train", "test")
    test = load(path, split="test")
    assert (test.classes, test.labels.tolist(), test.classes_from_data) == (("a", "b", "c"), [2, 1], True)


def test_npz_that_is_damaged_or_pickled_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.npz"
    np.savez(path, x=BYTES, y=np.array([None, {}], object))
    with pytest.raises(DataError, match=r"bad\.npz: y can't be read"):
        load(path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DataError, match=r"bad\.npz: not a readable"):
        load(path)
    path.write_bytes(b"")
    with pytest.raises(DataError, match=r"bad\.npz: not a readable"):
        load(path)
    with path.open("wb") as file:
        np.save(file, BYTES)
    with pytest.raises(DataError, match=r"bad\.npz: holds one bare array"):
        load(path)
    np.savez(path, x=BYTES, labels=LABELS)
    with pytest.raises(DataError, match="holds x, labels, but the train split needs x and y"):
        load(path)
    np.savez(path, x=BYTES, y=LABELS[:3])
    with pytest.raises(DataError, match=r"labels have shape \(3,\), but 6 images"):
        load(path)
