"""Samples on disk: whole or not there at all, and readable by our own loader."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from datalens.cli import targets
from datalens.data import load
from datalens.errors import RunError

IMAGES = np.random.default_rng(3).integers(0, 256, (6, 1, 5, 4), dtype=np.uint8)
LABELS = np.array([2, 0, 2, 1, 0, 2])
CLASSES = ("ant", "bee", "cat", "none of these")


def test_npz_is_read_back(tmp_path: Path) -> None:
    targets.write_npz(tmp_path / "a.npz", IMAGES, LABELS)
    data = load(tmp_path / "a.npz", classes=CLASSES, any_size=True)
    np.testing.assert_array_equal(data.images, IMAGES)
    np.testing.assert_array_equal(data.labels, LABELS)
    targets.write_npz(tmp_path / "b.npz", IMAGES, LABELS)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize("channels", [1, 3])
def test_a_folder_is_read_back(tmp_path: Path, channels: int) -> None:
    images = np.repeat(IMAGES, channels, axis=1)
    images[:, 0] ^= 7
    assert targets.write_folder(tmp_path / "f", images, LABELS, CLASSES) == CLASSES
    data = load(tmp_path / "f", any_size=True)
    assert data.classes == tuple(sorted(CLASSES))
    order = np.argsort(LABELS, kind="stable")
    np.testing.assert_array_equal(data.images, images[order])
    assert sorted(path.name for path in (tmp_path / "f" / "ant").iterdir()) == ["000001.png", "000004.png"]


def test_names_of_people_stay() -> None:
    names = ("console", "com", "com10", "aux in", "Fähre", "trains", "a.b", "x" * 100)
    assert targets.folder_names(names) == names


@pytest.mark.parametrize(
    "names", [("../up", "a"), ("a/b", "c"), (".hidden", "a"), ("train", "test"), ("A", "a"), ("x" * 200, "y"),
              ("", "y"), ("a.", "b"), (" a", "b"), ("a\nb", "c"), ("a\\b", "c"), ("..", "c"), ("Train", "a"),
              ("a\0", "b"), ("a\x7f", "b"), ("a\u2028b", "c"), ("\udcff", "b"), ("con", "b"), ("NUL.txt", "b"),
              ("Com1", "b"), ("lpt9.a.b", "c"), ("stra\u00dfe", "STRASSE"), ("\u00e9", "e\u0301"),
              ("\u20ac" * 90, "b")]
)  # fmt: skip
def test_names_that_cannot_name_a_folder_become_numbers(tmp_path: Path, names: tuple[str, ...]) -> None:
    assert targets.write_folder(tmp_path / "f", IMAGES[:2], np.array([0, 1]), names) == ("0", "1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f"]
    assert sorted(path.name for path in (tmp_path / "f").iterdir()) == ["0", "1"]


@pytest.mark.parametrize("name", ["out.npz", "out"])
def test_a_failure_half_way_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    def write(target: Path) -> None:
        if targets.is_npz(target):
            targets.write_npz(target, IMAGES, LABELS)
        else:
            targets.write_folder(target, IMAGES, LABELS, CLASSES)

    monkeypatch.setattr(targets.os, "fsync", fail)
    monkeypatch.setattr(targets, "_put_in_place", fail)
    with pytest.raises(OSError, match="No space"):
        write(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_exchange_puts_the_old_folder_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "f"
    targets.write_folder(target, IMAGES, LABELS, CLASSES)
    rename, failed = Path.rename, []

    def fail_once(self: Path, to: Path) -> Path:
        if Path(to) == target and not failed:
            failed.append(to)
            raise OSError(5, "Input/output error")
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", fail_once)
    with pytest.raises(OSError, match="Input/output"):
        targets.write_folder(target, IMAGES[:1], LABELS[:1], CLASSES)
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
    assert len(list(target.rglob("*.png"))) == 6


def test_only_samples_are_overwritten(tmp_path: Path) -> None:
    ours, foreign, file = tmp_path / "ours", tmp_path / "foreign", tmp_path / "plain.npz"
    targets.write_folder(ours, IMAGES, LABELS, CLASSES)
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("mine")
    file.write_text("")
    targets.check_target(ours, overwrite=True, num_bytes=1)
    targets.check_target(file, overwrite=True, num_bytes=1)
    for target, said in ((foreign, "other things than samples"), (tmp_path / "ours", "--overwrite")):
        with pytest.raises(RunError, match=said):
            targets.check_target(target, overwrite=target is foreign, num_bytes=1)
    (ours / "ant" / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match="other things"):
        targets.check_target(ours, overwrite=True, num_bytes=1)
    directory = tmp_path / "d.npz"
    directory.mkdir()
    with pytest.raises(RunError, match="is not a file"):
        targets.check_target(directory, overwrite=True, num_bytes=1)
    targets.write_folder(tmp_path / "foreign2", IMAGES[:1], LABELS[:1], CLASSES)


def test_targets_that_cannot_work_are_refused_early(tmp_path: Path) -> None:
    for name, said in (("a.png", "not written as .png"), ("no/such/a.npz", "make it first")):
        with pytest.raises(RunError, match=said):
            targets.check_target(tmp_path / name, overwrite=False, num_bytes=1)
    with pytest.raises(RunError, match="ask for fewer"):
        targets.check_target(tmp_path / "a.npz", overwrite=False, num_bytes=2**60)
