"""LabelledImages refuses what breaks its promises; duplicates are counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from datalens.data import LabelledImages, find_exact_duplicates
from datalens.errors import DataError


def make(**changes: Any) -> LabelledImages:
    fields: dict[str, Any] = {
        "images": np.zeros((3, 1, 4, 5), np.uint8),
        "labels": np.array([0, 1, 1]),
        "classes": ("a", "b"),
        "name": "mine",
        "public": False,
    }
    return LabelledImages(**(fields | changes))


def test_sizes() -> None:
    data = make(classes=("a", "b", "unused"))
    assert (data.num_records, data.num_classes, data.image_shape) == (3, 3, (1, 4, 5))


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"images": np.zeros((3, 1, 4, 5))}, "float64"),
        ({"images": np.zeros((3, 4, 5), np.uint8)}, r"\(3, 4, 5\)"),
        ({"images": np.zeros((3, 2, 4, 5), np.uint8)}, "2 channels"),
        ({"images": np.zeros((0, 1, 4, 5), np.uint8)}, "no pixel"),
        ({"labels": np.array([0, 1, 2])}, r"label 2 is outside 0\.\.1"),
        ({"labels": np.array([0, -1, 1])}, "label -1"),
        ({"labels": np.array([0, 1])}, r"\(2,\)"),
        ({"labels": np.array([0, 1, 1], np.int32)}, "int32"),
        ({"classes": ()}, r"\(\)"),
        ({"classes": ("a", "a")}, "'a' is named twice"),
        ({"classes": ("a", "")}, "''"),
        ({"group_ids": np.array([1, 2])}, r"\(2,\)"),
    ],
)
def test_refuses_in_one_line_that_shows_the_value(changes: dict[str, Any], shown: str) -> None:
    with pytest.raises(DataError, match=shown) as caught:
        make(**changes)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("mine: ")


def test_to_unit_uses_the_type_and_not_the_data() -> None:
    images = np.array([0, 51, 102], np.uint8).reshape(3, 1, 1, 1)
    unit = make(images=images).to_unit()
    assert unit.dtype == torch.float32
    torch.testing.assert_close(unit.flatten(), torch.tensor([0.0, 0.2, 0.4]))


def test_exact_duplicates_are_reported_r51() -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (50, 1, 8, 8), dtype=np.uint8)
    copied = np.concatenate([images, np.repeat(images[:4], 9, axis=0)])
    report = find_exact_duplicates(copied[rng.permutation(len(copied))])
    assert (report.num_records, report.num_distinct, report.num_copied) == (86, 50, 4)
    assert (report.num_extra, report.largest_group) == (36, 10)
    assert find_exact_duplicates(images).num_extra == 0


@pytest.mark.parametrize("how", ["backwards", "read-only"])
def test_tensors_hold_the_records_wherever_they_lie(how: str) -> None:
    images = np.arange(12, dtype=np.uint8).reshape(3, 1, 2, 2)
    labels = np.array([0, 1, 1])
    if how == "backwards":
        images, labels = images[::-1], labels[::-1]
    else:
        images.flags.writeable = labels.flags.writeable = False
    found = LabelledImages(images, labels, ("a", "b"), "here", public=True).tensors()
    assert [tensor.tolist() for tensor in found] == [images.tolist(), labels.tolist()]
