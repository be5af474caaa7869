"""Images as users hold them -> one form that every measure starts from: uint8 [N, C, H, W]."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from datalens.errors import DataError

MAX_CHANNELS = 4
_TOLERANCE = 1e-3

ImageArray: TypeAlias = npt.NDArray[Any] | torch.Tensor


class ValueRange(StrEnum):
    """What the numbers in an image mean: black and white are the two ends."""

    BYTE = "byte"  # 0 .. 255
    UNIT = "unit"  # 0 .. 1
    SIGNED = "signed"  # -1 .. 1


_ENDS = {ValueRange.BYTE: (0.0, 255.0), ValueRange.UNIT: (0.0, 1.0), ValueRange.SIGNED: (-1.0, 1.0)}


def byte_images(
    images: ImageArray, value_range: ValueRange | str | None = None, *, name: str = "images"
) -> npt.NDArray[np.uint8]:
    """One form for all images: uint8 ``[N, C, H, W]``, 0 black and 255 white.

    Other types are rounded to the nearest of 256 levels, as a PNG file would, so images in memory, in PNG
    and in npz give the same numbers. uint8 needs no declaration and is taken as it is.

    Args:
        images: ``[N, H, W]``, ``[N, C, H, W]`` or ``[N, H, W, C]`` with C in 1..4.
        value_range: What the numbers mean, where they are not uint8: ``byte``, ``unit`` or ``signed``.
        name: What to call the images in an error.

    Raises:
        DataError: no image, another shape, an undeclared range, a value outside the declared range, NaN,
            or a declared range that the values contradict.

    >>> byte_images(np.array([[[0.0, 1.0]]]), "unit").tolist()
    [[[[0, 255]]]]
    """
    array = images.detach().cpu().numpy() if isinstance(images, torch.Tensor) else np.asarray(images)
    array = _channels_first(array, name)
    if array.dtype == np.uint8:
        return np.require(array, requirements=["C", "W"])
    if value_range is None:
        raise DataError(
            f"{name} are {array.dtype} of undeclared range; pass uint8, or value_range=byte, unit or signed"
        )
    try:
        value_range = ValueRange(value_range)
    except ValueError:
        known = ", ".join(ValueRange)
        raise DataError(f"value_range {value_range!r} is not known; choose one of: {known}") from None
    return _to_bytes(array, value_range, name)


def content_order(
    images: npt.NDArray[np.uint8], labels: npt.NDArray[np.int64] | None = None
) -> npt.NDArray[np.int64]:
    """The order of images by a digest of their own pixels, then by their labels.

    Whatever depends on the order of images (batches, splits, which ones are taken when fewer are asked for) then
    is the same for the same images, in whatever order a file or a folder lists them; and no class comes first.
    """
    digests = np.array([hashlib.blake2b(image.tobytes(), digest_size=16).digest() for image in images], "V16")
    words = digests.view(">u8").reshape(-1, 2)
    last = np.zeros(len(images), np.int64) if labels is None else labels
    return np.lexsort((last, words[:, 1], words[:, 0]))


def check_labels(
    labels: ImageArray, num_images: int, num_classes: int, *, name: str
) -> npt.NDArray[np.int64]:
    """The labels as int64 ``[N]``, after checking that there is one in 0..Y-1 for each image.

    Raises:
        DataError: not one label an image, a type that is not integer, or a label outside 0..Y-1.
    """
    array = labels.detach().cpu().numpy() if isinstance(labels, torch.Tensor) else np.asarray(labels)
    if array.shape != (num_images,):
        raise DataError(f"{name} have shape {array.shape} for {num_images} images; give one label an image")
    if not np.issubdtype(array.dtype, np.integer):
        raise DataError(f"{name} are {array.dtype}; give integers from 0 to {num_classes - 1}")
    if array.min() < 0 or array.max() >= num_classes:
        found = f"{array.min()} to {array.max()}"
        raise DataError(f"{name} go from {found}; with {num_classes} classes give 0 to {num_classes - 1}")
    return array.astype(np.int64)


def _channels_first(array: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    if array.ndim == 3:
        array = array[:, None]
    elif array.ndim == 4 and array.shape[1] > MAX_CHANNELS >= array.shape[3]:
        array = array.transpose(0, 3, 1, 2)
    if array.ndim != 4 or not 1 <= array.shape[1] <= MAX_CHANNELS or 0 in array.shape[1:]:
        raise DataError(f"{name} have shape {array.shape}; give [N, H, W], [N, C, H, W] or [N, H, W, C]")
    if len(array) == 0:
        raise DataError(f"{name} are empty (0 images); give at least one")
    return array


def _to_bytes(array: npt.NDArray[Any], value_range: ValueRange, name: str) -> npt.NDArray[np.uint8]:
    low, high = _ENDS[value_range]
    out = np.empty(array.shape, dtype=np.uint8)
    whole, top = True, -np.inf
    for start in range(0, len(array), 4096):
        part = array[start : start + 4096].astype(np.float64)
        slack = _TOLERANCE * (high - low)
        if not (part.min() >= low - slack and part.max() <= high + slack):
            raise DataError(
                f"{name} hold {part.min():.4g} to {part.max():.4g}, outside the declared range {value_range} "
                f"({low:g} to {high:g}); declare the range they have"
            )
        whole, top = whole and bool(np.all(part == np.rint(part))), max(top, float(part.max()))
        scaled = np.clip((part - low) / (high - low), 0.0, 1.0) * 255.0
        out[start : start + 4096] = np.floor(scaled + 0.5).astype(np.uint8)
    if value_range is ValueRange.BYTE and top <= 1.0 and not whole:
        raise DataError(f"{name} are declared byte (0 to 255) but lie in 0 to 1; declare value_range=unit")
    return out
