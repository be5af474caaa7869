"""Where samples may go: names and places, asked before anything is drawn."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from datalens.cli.output import check_parent
from datalens.errors import ConfigError, RunError
from datalens.privacy.promises import UNFIT_MARK
from datalens.writing.kinds import SampleFormat
from datalens.writing.whole import holds_only_samples

_NOT_A_FOLDER = (
    ".npy",
    ".zip",
    ".png",
    ".jpg",
    ".jpeg",
    ".csv",
    ".json",
    ".h5",
    ".hdf5",
    ".pt",
    ".pkl",
    ".gz",
)


def format_of(target: Path, asked: SampleFormat | None) -> SampleFormat:
    """The form in which samples go to a target: the one asked for, else the one that its name tells.

    Raises:
        ConfigError: the name's ending is one of another form.
        RunError: the ending is one of files that samples are never written as.

    >>> format_of(Path("digits"), SampleFormat.IDX), format_of(Path("digits.npz"), None)
    (<SampleFormat.IDX: 'idx'>, <SampleFormat.NPZ: 'npz'>)
    """
    told = SampleFormat.told_by(target)
    if not told.suffix and target.suffix.lower() in _NOT_A_FOLDER:
        raise RunError(
            f"--out {target}: samples are not written as {target.suffix}; give FILE.npz, FILE.parquet or a folder"
        )
    if asked is None or told.suffix == asked.suffix:
        return told if asked is None else asked
    if asked.suffix:
        raise ConfigError(f"--out {target}: --format {asked} writes a file; end its name in {asked.suffix}")
    raise ConfigError(
        f"--out {target}: --format {asked} writes a folder; take {target.suffix} off its name, or leave --format out"
    )


def marked(target: Path, *, publishable: bool) -> Path:
    """The target, whose own name says so where what goes there is not fit for publication.

    >>> marked(Path("out/samples.npz"), publishable=False).name
    'samples-NOT-FOR-PUBLICATION.npz'
    >>> marked(Path("out/samples.npz"), publishable=True).name
    'samples.npz'
    """
    if target.name in ("", ".."):
        target = target.resolve()
    suffix = target.suffix if SampleFormat.told_by(target).suffix else ""
    stem = target.name.removesuffix(suffix)
    if publishable or not stem or stem.endswith(UNFIT_MARK):
        return target
    return target.with_name(f"{stem}-{UNFIT_MARK}{suffix}")


def check_target(target: Path, form: SampleFormat, *, overwrite: bool, num_bytes: int) -> None:
    """Refuse a target that cannot be written, or holds something, before anything is drawn.

    Args:
        target: a file or folder.
        form: of what is to be written.
        overwrite: whether samples that are there may be replaced.
        num_bytes: the room that the images need.

    Raises:
        RunError: says why and what to do.
    """
    check_parent(target, "--out")
    if os.path.lexists(target):
        if not overwrite:
            raise RunError(f"--out {target}: exists already; choose another, or give --overwrite")
        if not (target.is_file() if form.suffix else target.is_dir()):
            kind = "a file" if form.suffix else "a folder"
            raise RunError(f"--out {target}: is not {kind}, so it is not overwritten; choose another")
        if target.is_dir() and not holds_only_samples(target):
            raise RunError(f"--out {target}: holds other things than samples; choose another folder")
    check_room(target, num_bytes)


def check_room(target: Path, num_bytes: int) -> None:
    """Refuse more images than the disk has room for.

    Raises:
        RunError: says how much there is.
    """
    free = shutil.disk_usage(target.absolute().parent).free
    if num_bytes > free:
        raise RunError(
            f"--num-samples: the images need {num_bytes / 2**30:.3g} GiB, but {target.absolute().parent} has "
            f"{free / 2**30:.3g} GiB left; ask for fewer, or choose another --out"
        )
