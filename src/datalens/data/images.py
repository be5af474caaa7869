"""Labelled images as every other part of the package sees them: bytes, class numbers and class names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from datalens.data.class_names import check_class_names
from datalens.data.groups import group_ids_of
from datalens.errors import DataError

if TYPE_CHECKING:
    import torch

Split = Literal["train", "test"]
SPLITS: tuple[Split, ...] = ("train", "test")
CHANNEL_COUNTS = (1, 3)


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Images with one class each; checked when made, so that nothing later has to ask.

    The list of classes counts as public: generated labels are drawn from it uniformly, so it must not be
    learnt from people's data. ``classes_from_data`` says that it was, and the certificate repeats that.

    Attributes:
        images: uint8 [R, C, H, W], grey (C = 1) or colour (C = 3), values 0 to 255.
        labels: int64 [R], each in 0..Y-1.
        classes: the Y public class names; a class may have no record.
        name: where the images come from, for people to read.
        public: whether the images are published research data rather than people's secrets.
        group_ids: int64 [R], equal for records of one group, such as one person, or None where each record
            stands alone. Each must be a function of its group's own name, never of what other groups there are
            (:func:`datalens.data.groups.group_ids_of`).
        classes_from_data: the class list was read off the data and not declared.
        notes: what happened while reading (such as damaged files left out on request); as private as the
            images themselves.
        positions: int64 [R], strictly increasing: each record's place among all that its source lists, where some
            were left out. Their slots stay empty, and no other record moves. None for 0 to R-1.
        listed: how many the source lists; None for R.

    Raises:
        DataError: naming the field, its value and the rule.

    >>> import numpy as np
    >>> pixels = np.zeros((2, 1, 4, 4), np.uint8)
    >>> data = LabelledImages(pixels, np.array([0, 1]), ("cat", "dog"), "pets", public=False)
    >>> data.num_records, data.num_classes, data.image_shape
    (2, 2, (1, 4, 4))
    """

    images: np.ndarray
    labels: np.ndarray
    classes: tuple[str, ...]
    name: str
    public: bool
    group_ids: np.ndarray | None = None
    classes_from_data: bool = False
    notes: tuple[str, ...] = ()
    positions: np.ndarray | None = None
    listed: int | None = None

    def __post_init__(self) -> None:
        _check_images(self.images, self.name)
        _check_classes(self.classes, self.name)
        _check_labels(self.labels, len(self.images), len(self.classes), self.name)
        if self.group_ids is not None:
            _check_groups(self.group_ids, len(self.images), self.name)
        _check_positions(self.positions, len(self.images), self.num_listed, self.name)

    def with_groups(self, names: Sequence[Any] | np.ndarray) -> LabelledImages:
        """The same records with the name of each one's group, such as its person, as text or whole numbers [R].

        Raises:
            DataError: names of another kind or number; see :func:`datalens.data.groups.group_ids_of`.
        """
        return replace(self, group_ids=group_ids_of(names, self.name))

    @property
    def num_records(self) -> int:
        """How many records there are: private unless declared."""
        return len(self.images)

    @property
    def num_listed(self) -> int:
        """How many records the source lists, those that were left out among them: private unless declared."""
        return self.num_records if self.listed is None else self.listed

    @property
    def num_classes(self) -> int:
        """How many classes are declared."""
        return len(self.classes)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(C, H, W), public."""
        _, channels, height, width = self.images.shape
        return (channels, height, width)

    def tensors(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Images uint8 [R, C, H, W] and labels int64 [R], in the same memory where PyTorch can use it.

        Arrays that are read-only or lie backwards are copied; whoever gets the tensors changes neither.

        >>> import numpy as np
        >>> pixels = np.arange(2, dtype=np.uint8).reshape(2, 1, 1, 1)[::-1]
        >>> data = LabelledImages(pixels, np.array([0, 0]), ("a",), "two", True)
        >>> data.tensors()[0].flatten().tolist()
        [1, 0]
        """
        import torch

        images, labels = (np.require(part, requirements=["C", "W"]) for part in (self.images, self.labels))
        return torch.from_numpy(images), torch.from_numpy(labels)

    def to_unit(self) -> torch.Tensor:
        """The images as a float32 tensor [R, C, H, W] in [0, 1]: byte / 255, whatever the data hold.

        >>> import numpy as np
        >>> data = LabelledImages(np.full((1, 1, 1, 2), 255, np.uint8), np.array([0]), ("a",), "white", True)
        >>> data.to_unit().tolist()
        [[[[1.0, 1.0]]]]
        """
        import torch

        return torch.tensor(self.images).to(torch.float32).div_(255.0)


def _check_images(images: object, name: str) -> None:
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8:
        found = images.dtype if isinstance(images, np.ndarray) else type(images).__name__
        raise DataError(f"{name}: images are {found}, but must be uint8; convert them with data.arrays first")
    if images.ndim != 4:
        raise DataError(
            f"{name}: images have shape {images.shape}, but must be [records, channels, height, width]"
        )
    if 0 in images.shape:
        raise DataError(
            f"{name}: images have shape {images.shape}, which holds no pixel; give at least one image"
        )
    if images.shape[1] not in CHANNEL_COUNTS:
        raise DataError(f"{name}: images have {images.shape[1]} channels; give 1 (grey) or 3 (colour)")


def _check_classes(classes: object, name: str) -> None:
    if not isinstance(classes, tuple) or not classes:
        raise DataError(f"{name}: classes is {classes!r:.60}, but must be a tuple of at least one name")
    check_class_names(classes, name)


def _check_labels(labels: object, num_records: int, num_classes: int, name: str) -> None:
    if not isinstance(labels, np.ndarray) or labels.dtype != np.int64:
        found = labels.dtype if isinstance(labels, np.ndarray) else type(labels).__name__
        raise DataError(f"{name}: labels are {found}, but must be int64; encode them with data.arrays first")
    if labels.shape != (num_records,):
        raise DataError(
            f"{name}: labels have shape {labels.shape}, but {num_records} images need ({num_records},)"
        )
    outside = labels[(labels < 0) | (labels >= num_classes)]
    if outside.size:
        raise DataError(f"{name}: label {outside[0]} is outside 0..{num_classes - 1}, the declared classes")


def _check_groups(group_ids: np.ndarray, num_records: int, name: str) -> None:
    if group_ids.shape != (num_records,) or group_ids.dtype != np.int64:
        raise DataError(
            f"{name}: group_ids are {group_ids.dtype} {group_ids.shape}, but must be int64 ({num_records},)"
        )


def _check_positions(positions: np.ndarray | None, num_records: int, num_listed: int, name: str) -> None:
    if positions is None:
        if num_listed < num_records:
            raise DataError(
                f"{name}: listed is {num_listed}, but there are {num_records} records; list them all"
            )
        return
    if positions.shape != (num_records,) or positions.dtype != np.int64:
        raise DataError(
            f"{name}: positions are {positions.dtype} {positions.shape}, but must be int64 ({num_records},)"
        )
    if positions[0] < 0 or positions[-1] >= num_listed or np.any(np.diff(positions) <= 0):
        raise DataError(f"{name}: positions must rise from one record to the next within 0..{num_listed - 1}")
