"""Any dataset of (image, label) is read item by item: tensors, arrays, Pillow images, words and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from own_sources import pictures
from PIL import Image
from torch.utils.data import Dataset, TensorDataset

from datalens.data import from_dataset
from datalens.errors import ConfigError, DataError


class Own(Dataset):
    """Items from a list; a number in place of one raises."""

    def __init__(self, items: list[Any], classes: list[str] | None = None) -> None:
        self.items = items
        if classes is not None:
            self.classes = classes

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        item = self.items[index]
        if isinstance(item, Exception):
            raise item
        return item


ARRAYS = pictures(4)
FORMS = {
    "Pillow": [Image.fromarray(array) for array in ARRAYS],
    "uint8 tensor": [torch.from_numpy(array)[None] for array in ARRAYS],
    "uint8 array": ARRAYS,
    "last channel": [array[:, :, None] for array in ARRAYS],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("label", [int, torch.tensor, np.int64, str, lambda number: np.eye(2)[number]])
def test_images_and_labels_of_every_kind(form: str, label: Any) -> None:
    data = from_dataset(Own([(image, label(number % 2)) for number, image in enumerate(FORMS[form])]))
    np.testing.assert_array_equal(data.images[:, 0], ARRAYS)
    assert (data.labels.tolist(), data.classes, data.classes_from_data) == ([0, 1, 0, 1], ("0", "1"), True)


def test_floats_need_a_declared_range() -> None:
    pairs = TensorDataset(torch.tensor(np.stack(ARRAYS))[:, None] / 255.0, torch.tensor([0, 1, 0, 1]))
    with pytest.raises(DataError, match=r"item 0: x is float32, whose black and white are unknown"):
        from_dataset(pairs)
    np.testing.assert_array_equal(from_dataset(pairs, value_range=(0, 1)).images[:, 0], ARRAYS)
    with pytest.raises(DataError, match=r"outside the declared range 0\.\.0\.5"):
        from_dataset(pairs, value_range=(0, 0.5))


def test_mappings_and_the_dataset_s_own_class_names() -> None:
    items = [{"image": image, "label": number % 2} for number, image in enumerate(FORMS["Pillow"])]
    data = from_dataset(Own(items, classes=["cat", "dog", "fish"]))
    assert (data.classes, data.classes_from_data) == (("cat", "dog", "fish"), True)
    declared = from_dataset(Own(items, classes=["cat", "dog"]), classes=["a", "b"])
    assert (declared.classes, declared.classes_from_data) == (("a", "b"), False)


def test_kinds_and_sizes_are_changed_on_request() -> None:
    colour = Image.new("RGBA", (20, 20), (255, 0, 0, 0))
    items = Own([(colour, 0), (ARRAYS[0], 1)])
    with pytest.raises(DataError, match=r"item 1: is 8x8, 1 channels, but dataset, item 0 is 20x20, 3"):
        from_dataset(items)
    data = from_dataset(items, image_size=16, channels=3, background="blue")
    assert data.image_shape == (3, 16, 16)
    assert data.images[0, :, 0, 0].tolist() == [0, 0, 255]
    assert data.notes == ()
    assert "1 see-through images laid over white" in from_dataset(items, image_size=8, channels=1).notes[0]


def test_items_that_cannot_be_read_keep_their_places() -> None:
    items = Own([(ARRAYS[0], 0), OSError("truncated"), (ARRAYS[1], 1), (Image.new("F", (8, 8)), 1)])
    with pytest.raises(
        DataError, match=r"2 of 4 items can't be used: .*item 1 \(OSError: 'truncated'\).*pixel kind F"
    ):
        from_dataset(items)
    data = from_dataset(items, skip_damaged=True)
    assert data.positions is not None
    assert (data.positions.tolist(), data.num_listed, data.labels.tolist()) == ([0, 2], 4, [0, 1])


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([], "holds no image that can be used"),
        ([5], r"item 0: is int, but must be \(image, label\)"),
        ([(ARRAYS[0], 0, 1)], r"item 0: is tuple, but must be \(image, label\)"),
        ([(np.zeros((8, 8, 8)), 0)], "item 0: x has shape"),
        ([(np.zeros(8), 0)], r"item 0: its image has shape \(8,\)"),
        ([("cat.png", 0)], r"item 0: its image has shape \(\)"),
        ([(ARRAYS[0], 0), (ARRAYS[0], "a")], "some labels are strings and some are not"),
        ([(ARRAYS[0], 0.5)], r"y holds 0\.5"),
        ([(ARRAYS[0], -1)], "y holds -1"),
        ([(ARRAYS[0], None)], "y mixes types"),
        ([(np.zeros((4, 4), np.uint8), 0)], "is 4x4, but sides must be 8 to 256"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(items: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        from_dataset(Own(items))
    assert str(caught.value).isprintable()


def test_a_dataset_without_length_is_refused() -> None:
    with pytest.raises(ConfigError, match="has no length; give a map-style dataset"):
        from_dataset(iter([(ARRAYS[0], 0)]))  # type: ignore[arg-type]
