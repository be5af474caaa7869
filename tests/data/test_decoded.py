"""Pictures are decoded once, kept whole or not at all, and never kept for other files."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from datalens.data import decoded
from datalens.data.decoded import Conversion, FolderStore, decode, missing_pictures
from datalens.errors import DataError

NAMES = ("b.png", "a.png", "b.png")


def plain(picture: Image.Image) -> Image.Image:
    return picture.convert("RGB").resize((64, 64))


PLAIN = Conversion("plain", plain)


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    (tmp_path / "set").mkdir()
    for place, name in enumerate(("a.png", "b.png")):
        Image.new("RGB", (5, 7), (place, 10 * place, 255)).save(tmp_path / "set" / name)
    return FolderStore(tmp_path / "set")


def kept(store: FolderStore) -> list[Path]:
    return sorted((store.path / "decoded").glob("*"))


def test_pictures_come_in_the_order_of_their_names(store: FolderStore) -> None:
    found = decode(store, NAMES, PLAIN, store.path / "decoded")
    assert found.shape == (3, 3, 64, 64) and found.dtype == np.uint8
    assert found[:, :, 0, 0].tolist() == [[1, 10, 255], [0, 0, 255], [1, 10, 255]]


def test_the_second_reading_takes_what_was_kept(store: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
    first = np.array(decode(store, NAMES, PLAIN, store.path / "decoded"))
    monkeypatch.setattr(decoded, "_pictures", lambda *_: pytest.fail("decoded again"))
    again = decode(store, NAMES, PLAIN, store.path / "decoded")
    assert np.array_equal(first, again) and len(kept(store)) == 1
    again[:] = 0
    assert np.array_equal(first, decode(store, NAMES, PLAIN, store.path / "decoded")), (
        "changes stay in memory"
    )


def test_another_picture_order_or_conversion_is_another_array(store: FolderStore) -> None:
    cache = store.path / "decoded"
    decode(store, NAMES, PLAIN, cache)
    (store.path / "a.png").write_bytes((store.path / "a.png").read_bytes() + b"\0")
    decode(store, NAMES, PLAIN, cache)
    decode(store, NAMES[::-1], PLAIN, cache)  # the same names in the same order: nothing new
    decode(store, NAMES[:2], PLAIN, cache)
    decode(store, NAMES[:2], Conversion("other", plain), cache)
    assert len(kept(store)) == 4


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"no array at all"])
def test_a_damaged_array_is_made_anew(store: FolderStore, content: bytes) -> None:
    cache = store.path / "decoded"
    expected = np.array(decode(store, NAMES, PLAIN, cache))
    (path,) = kept(store)
    path.write_bytes(content)
    assert np.array_equal(decode(store, NAMES, PLAIN, cache), expected)
    assert np.array_equal(np.load(path), expected)


def test_where_nothing_can_be_written_pictures_are_read_all_the_same(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(decoded.os, "replace", full)
    found = decode(store, NAMES, PLAIN, store.path / "decoded")
    assert found[:, 0, 0, 0].tolist() == [1, 0, 1] and kept(store) == []


def test_a_picture_that_cannot_be_used_leaves_nothing_behind(store: FolderStore) -> None:
    (store.path / "a.png").write_bytes((store.path / "a.png").read_bytes()[:40])
    with pytest.raises(DataError, match=r"a.png: can't be used .*get the file again"):
        decode(store, NAMES, PLAIN, store.path / "decoded")
    assert kept(store) == []

    def refuse(picture: Image.Image) -> Image.Image:
        raise ValueError("is too green")

    with pytest.raises(DataError, match=r"b.png: can't be used \(is too green\)"):
        decode(store, NAMES, Conversion("refusing", refuse), store.path / "decoded")


def test_pictures_that_are_not_there_are_counted(store: FolderStore) -> None:
    assert missing_pictures(store, ("a.png", "c.png")) == ["c.png"]
    with pytest.raises(DataError, match=r"1 of 2 listed pictures are not there, the first c.png"):
        decode(store, ("a.png", "c.png"), PLAIN, store.path / "decoded")


def test_only_png_and_jpeg_are_opened(store: FolderStore) -> None:
    target = io.BytesIO()
    Image.new("RGB", (4, 4)).save(target, "GIF")
    (store.path / "a.png").write_bytes(target.getvalue())
    with pytest.raises(DataError, match=r"a.png: can't be used \(no picture\)"):
        decode(store, NAMES, PLAIN, store.path / "decoded")
