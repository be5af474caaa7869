"""MNIST and Fashion-MNIST from files: real where this machine has them, tiny stand-ins for the damage."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from tiny_set import TINY, tiny_bytes, write_tiny

from datalens.cli.scoring import public_cache
from datalens.data import check, load
from datalens.data.names import PUBLISHED
from datalens.data.published import check_published, load_published, resolve_root
from datalens.data.user_cache import user_cache
from datalens.errors import ConfigError, DataError
from datalens.training.heads import heads_file


def test_real_mnist(mnist_root: Path) -> None:
    train, test = load("mnist", root=mnist_root), load("mnist", root=mnist_root, split="test")
    assert (train.images.shape, test.images.shape) == ((60_000, 1, 28, 28), (10_000, 1, 28, 28))
    assert (train.public, train.classes, train.classes_from_data) == (True, tuple("0123456789"), False)
    assert train.labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert all(result.status == "ok" for result in check("mnist", mnist_root))


def test_real_fashion_mnist(fashion_mnist_root: Path) -> None:
    train = load("fashion-mnist", root=fashion_mnist_root)
    test = load("fashion-mnist", root=fashion_mnist_root, split="test")
    assert (train.images.shape, test.images.shape) == ((60_000, 1, 28, 28), (10_000, 1, 28, 28))
    assert np.bincount(train.labels).tolist() == [6_000] * 10
    assert np.bincount(test.labels).tolist() == [1_000] * 10
    assert train.classes[9] == "Ankle boot"


def test_the_issued_digests_of_mnist_are_pinned() -> None:
    assert [file.md5 for file in PUBLISHED["mnist"].all_files] == [
        "6bbc9ace898e44ae57da46a324031adb",
        "a25bea736e30d166cdddb491f175f624",
        "2646ac647ad5339dbf082846283269ea",
        "27ae3e4e09519cfbb04c329615203637",
    ]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("place", ["tiny", "Tiny/raw"])
def test_every_layout_is_found(tmp_path: Path, packed: bool, place: str) -> None:
    write_tiny(tmp_path / place, packed=packed)
    assert load_published(TINY, "train", tmp_path).labels.tolist() == [0, 1, 2, 0, 1, 2]
    assert load_published(TINY, "test", tmp_path).images.shape == (3, 1, 2, 2)


def test_a_missing_file_is_named_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"train-images.*is not in .*datalens data fetch tiny.*DATALENS_DATA"):
        load_published(TINY, "train", tmp_path)
    assert {result.status for result in check_published(TINY, tmp_path)} == {"missing"}


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (b"", "empty"),
        (b"<html>not found</html>", "not whole gzip"),
        (gzip.compress(b"other", mtime=0), "795f3202b17cb6bc3d4b771d8c6c9eaf"),
    ],
)
def test_a_damaged_file_is_named_with_both_digests_r59(tmp_path: Path, damage: bytes, found: str) -> None:
    write_tiny(tmp_path / "tiny", packed=True)
    bad = tmp_path / "tiny" / (TINY.all_files[0].file + ".gz")
    bad.write_bytes(damage)
    with pytest.raises(DataError, match=found) as caught:
        load_published(TINY, "train", tmp_path)
    message = str(caught.value)
    assert str(bad) in message
    assert TINY.all_files[0].md5 in message
    assert "datalens data fetch tiny" in message
    assert "\n" not in message
    statuses = [result.status for result in check_published(TINY, tmp_path)]
    assert statuses == ["damaged", "ok", "ok", "ok"]


def test_a_whole_copy_wins_over_a_damaged_one(tmp_path: Path) -> None:
    write_tiny(tmp_path / "tiny", packed=False)
    (tmp_path / "tiny" / TINY.all_files[0].file).write_bytes(b"")
    write_tiny(tmp_path / "Tiny/raw", packed=True)
    assert load_published(TINY, "train", tmp_path).num_records == 6
    assert tiny_bytes()[TINY.all_files[0].file]


def test_where_the_data_root_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert resolve_root() == tmp_path / "cache" / "datalens"
    monkeypatch.setenv("DATALENS_DATA", str(tmp_path / "variable"))
    assert resolve_root() == tmp_path / "variable"
    assert resolve_root(tmp_path / "option") == tmp_path / "option"
    monkeypatch.delenv("DATALENS_DATA")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve_root() == tmp_path / ".cache" / "datalens"


@pytest.mark.parametrize("named", ["", "cache", "./cache"])
def test_no_cache_lies_below_the_folder_that_a_command_is_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", named)
    monkeypatch.setenv("HOME", str(tmp_path))
    mine = tmp_path / ".cache" / "datalens"
    assert resolve_root() == user_cache() == mine
    assert public_cache() == mine / "features"
    assert heads_file() == mine / "heads.json"


@pytest.mark.parametrize("name", ["imagenet", "./none", "none.npz"])
def test_unknown_sources_are_refused(name: str) -> None:
    with pytest.raises(
        DataError, match=r"mnist, fashion-mnist, cifar10, celeba-gender|no such (file|folder)"
    ):
        load(name)


def test_options_that_a_source_has_no_use_for_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="value_range"):
        load("shapes", value_range=(0, 1))
    with pytest.raises(ConfigError, match="split is 'val'"):
        load("shapes", split=cast(Any, "val"))
    with pytest.raises(ConfigError, match="disc, square"):
        load("shapes", classes=3)
    with pytest.raises(ConfigError, match="is published"):
        load("shapes", public=False)
    (tmp_path / "file.txt").write_text("x")
    with pytest.raises(DataError, match="neither a folder nor an"):
        load(str(tmp_path / "file.txt"))
