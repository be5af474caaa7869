"""Any map-style dataset of (image, label) pairs, such as PyTorch's, read item by item into labelled images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from PIL import Image

from datalens.data.arrays import ValueRange, channels_first, encode_labels, to_bytes
from datalens.data.class_names import check_class_names, declare_classes
from datalens.data.gathering import Gathering
from datalens.data.images import LabelledImages
from datalens.data.pixels import Form, Pixels, from_array, in_form
from datalens.errors import ConfigError, DataError


class MapDataset(Protocol):
    """What ``torch.utils.data.Dataset`` is where it has a length: items by number."""

    def __getitem__(self, index: int, /) -> Any: ...

    def __len__(self) -> int: ...


def from_dataset(
    dataset: MapDataset,
    *,
    classes: Sequence[object] | int | None = None,
    value_range: ValueRange | None = None,
    layout: str | None = None,
    image_size: int | tuple[int, int] | None = None,
    channels: int | None = None,
    background: str | None = None,
    skip_damaged: bool = False,
    name: str = "dataset",
    public: bool = False,
) -> LabelledImages:
    """Read every item of a dataset once, in order.

    Args:
        dataset: its items are (image, label), or mappings with these keys. An image is Pillow's, or a tensor or
            array [H, W], [C, H, W] or [H, W, C] of grey or colour.
        classes: the public class list (names or how many). Left out, it is the dataset's own ``classes``, or the
            labels found, and the result says so.
        value_range: what counts as black and white where tensors and arrays aren't uint8 or bool.
        layout: of tensors and arrays that fit both, "NCHW" or "NHWC".
        image_size: height and width to scale to, 8 to 256; left out, all must have one size already.
        channels: 1 or 3 to convert every image; left out, all must be of one kind already.
        background: what see-through images are laid over; white where it is left out.
        skip_damaged: leave items out that can't be read, their places empty, instead of refusing.
        name: where the images come from, for people to read.
        public: whether the images are published research data.

    Raises:
        DataError: items that are not what they should be; names the first.
        ConfigError: a setting that contradicts itself, or a dataset without length.

    >>> pairs = [(np.zeros((8, 8), np.uint8), "cat"), (np.ones((8, 8), np.uint8), "ant")]
    >>> data = from_dataset(pairs)
    >>> data.labels.tolist(), data.classes, data.image_shape
    ([1, 0], ('ant', 'cat'), (1, 8, 8))
    """
    form = Form.of(image_size, channels, background)
    try:
        count = len(dataset)
    except TypeError as error:
        raise ConfigError(f"{name}: has no length; give a map-style dataset with a length") from error
    gathering = Gathering(name, count, "items")
    labels: list[Any] = []
    for index in range(count):
        where = f"{name}, item {index}"
        try:
            item = dataset[index]
        except Exception as error:
            reason = " ".join(str(error).split())
            gathering.add(where, f"{type(error).__name__}: {reason!a:.80}")
            labels.append(None)
            continue
        image, label = _pair(item, where)
        gathering.add(where, _pixels(image, form, value_range, layout, where))
        labels.append(label)
    found = gathering.finish(skip_damaged=skip_damaged, says_background=background is None)
    there = [labels[place] for place in found.places]
    numbers, names = _numbers(there, classes, getattr(dataset, "classes", None), name)
    return LabelledImages(
        images=found.images,
        labels=numbers,
        classes=names,
        name=name,
        public=public,
        classes_from_data=classes is None,
        notes=found.notes,
        positions=found.positions,
        listed=found.listed,
    )


def _pair(item: Any, where: str) -> tuple[Any, Any]:
    """Image and label of an item."""
    if isinstance(item, Mapping) and "image" in item and "label" in item:
        return item["image"], item["label"]
    if isinstance(item, tuple | list) and len(item) == 2:
        return item[0], item[1]
    raise DataError(
        f"{where}: is {type(item).__name__}, but must be (image, label) or hold the keys image and label; wrap it"
    )


def _pixels(
    image: Any, form: Form, value_range: ValueRange | None, layout: str | None, where: str
) -> Pixels | str:
    """One item's image in its form, or why it can't be used."""
    if isinstance(image, Image.Image):
        try:
            return in_form(image, form)
        except (OSError, ValueError, SyntaxError) as error:  # Pillow reads a file only now
            return f"damaged ({' '.join(str(error).split())!a:.80})"
    try:
        array = np.asarray(image)
    except (ValueError, TypeError, RuntimeError) as error:
        raise DataError(
            f"{where}: its image is not an array; give a tensor, an array or a Pillow image"
        ) from error
    if array.ndim not in (2, 3) or 0 in array.shape:
        raise DataError(
            f"{where}: its image has shape {array.shape}; give [H,W], [C,H,W] or [H,W,C], or a Pillow image"
        )
    one = to_bytes(channels_first(array[np.newaxis], layout, where), value_range, where)
    return from_array(one[0], form)


def _numbers(
    labels: list[Any], classes: Sequence[object] | int | None, own: object, name: str
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Class numbers and names: declared, else the dataset's own, else found."""
    try:
        plain = [label if isinstance(label, str) else np.asarray(label).tolist() for label in labels]
    except (ValueError, TypeError, RuntimeError) as error:
        raise DataError(f"{name}: a label is no number and no string; give one label an item") from error
    if len({isinstance(label, str) for label in plain}) > 1:
        raise DataError(f"{name}: some labels are strings and some are not; give one kind")
    if classes is not None:
        return encode_labels(plain, declare_classes(classes), name)
    names = tuple(own) if isinstance(own, list | tuple) else ()
    are_places = all(isinstance(label, int) and 0 <= label < len(names) for label in plain)
    if are_places and all(isinstance(item, str) for item in names):
        check_class_names(names, name)
        return np.array(plain, np.int64), names
    return encode_labels(plain, None, name)
