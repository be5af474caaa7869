"""Where samples may go is decided before anything is drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from datalens.cli.targets import check_target, format_of
from datalens.errors import DataLensError, RunError
from datalens.writing import Contents, SampleFormat, write_samples

IMAGES = np.random.default_rng(3).integers(0, 256, (6, 1, 5, 4), dtype=np.uint8)
LABELS = np.array([2, 0, 2, 1, 0, 2])
CLASSES = ("ant", "bee", "cat", "none of these")
NPZ, FOLDER = SampleFormat.NPZ, SampleFormat.FOLDER


def write(target: Path, form: SampleFormat) -> None:
    write_samples(target, form, Contents.of(IMAGES, CLASSES), [(IMAGES, LABELS)])


@pytest.mark.parametrize(
    ("name", "asked", "form"),
    [
        ("a.npz", None, NPZ),
        ("a.NPZ", None, NPZ),
        ("a.parquet", None, SampleFormat.PARQUET),
        ("a.parquet", SampleFormat.PARQUET, SampleFormat.PARQUET),
        ("a", None, FOLDER),
        ("v1.2", None, FOLDER),
        ("a", SampleFormat.IDX, SampleFormat.IDX),
        ("a.b", SampleFormat.DATASETS, SampleFormat.DATASETS),
    ],
)
def test_the_form_is_told_by_name_and_option(
    name: str, asked: SampleFormat | None, form: SampleFormat
) -> None:
    assert format_of(Path(name), asked) is form


@pytest.mark.parametrize(
    ("name", "asked", "said"),
    [
        ("a.png", None, "not written as .png; give FILE.npz, FILE.parquet or a folder"),
        ("a.json", SampleFormat.IDX, "not written as .json"),
        ("a", NPZ, "--format npz writes a file; end its name in .npz"),
        ("a.npz", SampleFormat.PARQUET, "--format parquet writes a file; end its name in .parquet"),
        ("a.npz", FOLDER, "--format folder writes a folder; take .npz off its name"),
        ("a.parquet", SampleFormat.IDX, "--format idx writes a folder; take .parquet off"),
    ],
)
def test_a_name_and_an_option_that_disagree_are_refused(
    name: str, asked: SampleFormat | None, said: str
) -> None:
    with pytest.raises(DataLensError, match=said):
        format_of(Path(name), asked)


def test_only_samples_are_overwritten(tmp_path: Path) -> None:
    ours, foreign, file, idx = (tmp_path / name for name in ("ours", "foreign", "plain.npz", "idx"))
    write(ours, FOLDER)
    write(idx, SampleFormat.IDX)
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("mine")
    file.write_text("")
    check_target(ours, FOLDER, overwrite=True, num_bytes=1)
    check_target(ours, SampleFormat.IDX, overwrite=True, num_bytes=1)
    check_target(idx, FOLDER, overwrite=True, num_bytes=1)
    check_target(file, NPZ, overwrite=True, num_bytes=1)
    for target, said in ((foreign, "other things than samples"), (tmp_path / "ours", "--overwrite")):
        with pytest.raises(RunError, match=said):
            check_target(target, FOLDER, overwrite=target is foreign, num_bytes=1)
    (ours / "ant" / "notes.txt").write_text("mine")
    (idx / "t10k-images-idx3-ubyte").write_text("the real ones")
    for target in (ours, idx):
        with pytest.raises(RunError, match="other things"):
            check_target(target, FOLDER, overwrite=True, num_bytes=1)
    directory = tmp_path / "d.npz"
    directory.mkdir()
    for target, form, said in ((directory, NPZ, "is not a file"), (file, FOLDER, "is not a folder")):
        with pytest.raises(RunError, match=said):
            check_target(target, form, overwrite=True, num_bytes=1)


def test_targets_that_cannot_work_are_refused_early(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="make it first"):
        check_target(tmp_path / "no" / "such" / "a.npz", NPZ, overwrite=False, num_bytes=1)
    with pytest.raises(RunError, match="ask for fewer"):
        check_target(tmp_path / "a.npz", NPZ, overwrite=False, num_bytes=2**60)
