"""Samples on disk are whole or not there at all, whatever happens while they are written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from datalens.data import load
from datalens.errors import ConfigError, RunError
from datalens.writing import Contents, SampleFormat, contents, whole, write_samples

IMAGES = np.random.default_rng(3).integers(0, 256, (6, 1, 5, 4), dtype=np.uint8)
LABELS = np.array([2, 0, 2, 1, 0, 2])
CLASSES = ("ant", "bee", "cat", "none of these")
FORMS = [pytest.param(form, id=form) for form in SampleFormat]
Chunk = tuple[np.ndarray, np.ndarray]


def write(
    target: Path,
    form: SampleFormat,
    images: np.ndarray = IMAGES,
    labels: np.ndarray = LABELS,
    *,
    overwrite: bool = False,
) -> None:
    write_samples(target, form, Contents.of(images, CLASSES), [(images, labels)], overwrite=overwrite)


def name_of(form: SampleFormat) -> str:
    return f"out{form.suffix}"


@pytest.fixture(autouse=True)
def _packages(request: pytest.FixtureRequest) -> None:
    form = getattr(request.node, "callspec", None) and request.node.callspec.params.get("form")
    if form in (SampleFormat.PARQUET, SampleFormat.DATASETS):
        pytest.importorskip("pyarrow", reason="pyarrow (extra parquet) is not installed")


@pytest.mark.parametrize("channels", [1, 3])
def test_a_folder_is_read_back(tmp_path: Path, channels: int) -> None:
    images = np.repeat(IMAGES, channels, axis=1)
    images[:, 0] ^= 7
    write(tmp_path / "f", SampleFormat.FOLDER, images)
    data = load(tmp_path / "f", any_size=True)
    assert data.classes == tuple(sorted(CLASSES))
    order = np.argsort(LABELS, kind="stable")
    np.testing.assert_array_equal(data.images, images[order])
    assert sorted(path.name for path in (tmp_path / "f" / "ant").iterdir()) == ["000001.png", "000004.png"]


def test_only_classes_that_were_asked_for_get_a_folder(tmp_path: Path) -> None:
    told = Contents(2, (1, 5, 4), CLASSES, asked=(0, 3))
    write_samples(tmp_path / "f", SampleFormat.FOLDER, told, [(IMAGES[:2], np.array([0, 0]))])
    assert sorted(path.name for path in (tmp_path / "f").iterdir()) == ["ant", "none of these"]


class Broken(Exception):
    """What no code of ours knows."""


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), Broken()])
@pytest.mark.parametrize("there", [False, True])
def test_what_breaks_while_images_come_leaves_everything_as_it_was(
    tmp_path: Path, form: SampleFormat, error: BaseException, there: bool
) -> None:
    target = tmp_path / name_of(form)
    if there:
        write(target, form)
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}

    def breaking() -> Iterator[Chunk]:
        yield IMAGES[:4], LABELS[:4]
        raise error

    with pytest.raises(type(error)):
        write_samples(target, form, Contents.of(IMAGES, CLASSES), breaking(), overwrite=True)
    assert {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("form", [form for form in SampleFormat if form is not SampleFormat.FOLDER])
def test_a_disk_that_is_full_at_the_last_moment_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: SampleFormat
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(contents.os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write(tmp_path / name_of(form), form)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", FORMS)
def test_a_failed_exchange_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: SampleFormat
) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(whole, "_put_in_place", fail)
    with pytest.raises(OSError, match="Input/output"):
        write(tmp_path / name_of(form), form)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_exchange_puts_the_old_folder_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "f"
    write(target, SampleFormat.FOLDER)
    rename, failed = Path.rename, []

    def fail_once(self: Path, to: Path) -> Path:
        if Path(to) == target and not failed:
            failed.append(to)
            raise OSError(5, "Input/output error")
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", fail_once)
    with pytest.raises(OSError, match="Input/output"):
        write(target, SampleFormat.FOLDER, IMAGES[:1], LABELS[:1], overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
    assert len(list(target.rglob("*.png"))) == 6


@pytest.mark.parametrize("form", FORMS)
def test_what_is_there_is_replaced_only_on_request(tmp_path: Path, form: SampleFormat) -> None:
    target = tmp_path / name_of(form)
    write(target, form)
    with pytest.raises(RunError, match="exists already"):
        write(target, form, IMAGES[:2], LABELS[:2])
    write(target, form, IMAGES[:2], LABELS[:2], overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    if form in (SampleFormat.NPZ, SampleFormat.FOLDER):
        assert load(target, any_size=True).num_records == 2


def test_what_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "a.npz"

    def slow() -> Iterator[Chunk]:
        target.write_text("of somebody else")
        yield IMAGES, LABELS

    with pytest.raises(RunError, match="exists already"):
        write_samples(target, SampleFormat.NPZ, Contents.of(IMAGES, CLASSES), slow())
    assert target.read_text() == "of somebody else"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [5, 7])
def test_other_than_the_announced_number_is_refused(tmp_path: Path, form: SampleFormat, count: int) -> None:
    told = Contents(count, (1, 5, 4), CLASSES)
    with pytest.raises(ConfigError, match=f"6 images came, but {count} were announced"):
        write_samples(tmp_path / name_of(form), form, told, [(IMAGES, LABELS)])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("channels", [1, 3])
def test_the_room_asked_for_is_enough_for_noise(tmp_path: Path, form: SampleFormat, channels: int) -> None:
    """Noise is what PNG cannot make smaller: what is asked for covers it, and hardly more."""
    if form is SampleFormat.IDX and channels == 3:
        pytest.skip("idx is grey")
    images = np.random.default_rng(0).integers(0, 256, (400, channels, 32, 32), dtype=np.uint8)
    write(tmp_path / name_of(form), form, images, np.arange(400) % 4)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    block = 4096 if form is SampleFormat.FOLDER else 1
    used = sum(block * -(-path.stat().st_size // block) for path in files)
    needed = whole.room_needed(form, Contents.of(images, CLASSES))
    assert 0.9 * needed < used < needed + 4000


def test_links_are_replaced_and_what_they_lead_to_stays(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    write(real, SampleFormat.FOLDER)
    link.symlink_to(real)
    write(link, SampleFormat.FOLDER, IMAGES[:1], LABELS[:1], overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]
    assert len(list(real.rglob("*.png"))) == 6
    assert not link.is_symlink() and len(list(link.rglob("*.png"))) == 1
