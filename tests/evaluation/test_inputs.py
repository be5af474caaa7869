"""Whatever form images come in, the same pictures become the same bytes (cases R55, R57, R69)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from datalens.errors import DataError
from datalens.evaluation.inputs import byte_images, check_labels


@pytest.fixture
def pictures() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (64, 1, 9, 12), dtype=np.uint8)


def test_case_r57_declared_ranges_give_the_same_bytes(pictures: np.ndarray) -> None:
    unit = pictures.astype(np.float32) / 255
    for images, declared in (
        (pictures, None),
        (unit, "unit"),
        (unit * 2 - 1, "signed"),
        (pictures.astype(np.float32), "byte"),
        (pictures.astype(np.int64), "byte"),
        (torch.from_numpy(unit).double(), "unit"),
    ):
        assert np.array_equal(byte_images(images, declared), pictures)


def test_case_r57_bool_needs_a_declaration() -> None:
    images = np.array([[[True, False]]])
    assert byte_images(images, "unit").tolist() == [[[[255, 0]]]]
    with pytest.raises(DataError, match="undeclared"):
        byte_images(images)


def test_case_r57_undeclared_mixed_and_contradicted_ranges_are_refused(pictures: np.ndarray) -> None:
    unit = pictures.astype(np.float32) / 255
    mixed = np.concatenate([unit, pictures.astype(np.float32)])
    signed = unit * 2 - 1
    broken = unit.copy()
    broken[3, 0, 2, 2] = np.nan
    with pytest.raises(DataError, match="undeclared"):
        byte_images(unit)
    for images, declared, rule in (
        (mixed, "unit", "outside the declared"),
        (signed, "unit", "outside the declared"),
        (unit, "byte", "declare value_range=unit"),
        (broken, "unit", "nan"),
        (unit, "percent", "not known"),
    ):
        with pytest.raises(DataError, match=rule) as caught:
            byte_images(images, declared)
        assert "\n" not in str(caught.value)


def test_case_r55_grey_layouts_agree(pictures: np.ndarray) -> None:
    assert np.array_equal(byte_images(pictures[:, 0]), pictures)
    assert np.array_equal(byte_images(pictures[:, 0, :, :, None]), pictures)


def test_colour_layouts_agree() -> None:
    colour = np.random.default_rng(1).integers(0, 256, (5, 3, 8, 8), dtype=np.uint8)
    assert np.array_equal(byte_images(colour.transpose(0, 2, 3, 1)), colour)


def test_case_r69_memory_png_and_npz_agree(tmp_path: Path) -> None:
    floats = np.random.default_rng(2).random((10, 8, 8), dtype=np.float32)
    ours = byte_images(floats, "unit")
    for number, image in enumerate(ours):
        Image.fromarray(image[0]).save(tmp_path / f"{number}.png")
    np.savez(tmp_path / "x.npz", x=ours)
    from_png = np.stack([np.asarray(Image.open(tmp_path / f"{number}.png")) for number in range(10)])
    assert np.array_equal(byte_images(from_png), ours)
    assert np.array_equal(byte_images(np.load(tmp_path / "x.npz")["x"]), ours)
    assert np.abs(ours[:, 0] / 255.0 - floats).max() <= 0.5 / 255 + 1e-6


def test_shapes_and_emptiness_are_refused() -> None:
    for shape in ((28, 28), (2, 5, 28, 28), (1, 1, 0, 3)):
        with pytest.raises(DataError, match="shape"):
            byte_images(np.zeros(shape, np.uint8))
    with pytest.raises(DataError, match="0 images"):
        byte_images(np.zeros((0, 1, 4, 4), np.uint8))


def test_labels_are_checked() -> None:
    assert check_labels(torch.tensor([0, 2]), 2, 3, name="y").tolist() == [0, 2]
    for labels, rule in (
        (np.array([0, 3]), "0 to 2"),
        (np.array([-1, 0]), "0 to 2"),
        (np.array([0]), "one label an image"),
        (np.array([0.0, 1.0]), "integers"),
    ):
        with pytest.raises(DataError, match=rule):
            check_labels(labels, 2, 3, name="y")
