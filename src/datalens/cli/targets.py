"""Samples on disk: an .npz file or a folder of PNGs, whole or not there at all."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from datalens.cli.output import check_parent
from datalens.errors import RunError
from datalens.privacy.promises import UNFIT_MARK

_NOT_A_FOLDER = (".npy", ".zip", ".png", ".jpg", ".jpeg", ".csv", ".json", ".h5", ".hdf5", ".pt", ".pkl")
_OURS = re.compile(r"[0-9]{6,}\.png")
_SAFE = re.compile(r"[^./\\:*?\"<>|][^/\\:*?\"<>|]{0,99}")
_MOST_BYTES = 255
_SPLIT_NAMES = ("train", "test")
_DEVICES = re.compile(r"(con|prn|aux|nul|(com|lpt)[0-9¹²³])(\..*)?")
"""Names that Windows keeps for devices, whatever comes after a dot."""


def is_npz(target: Path) -> bool:
    """Whether the target is a file; anything else is a folder."""
    return target.suffix.lower() == ".npz"


def marked(target: Path, *, publishable: bool) -> Path:
    """The target, whose own name says so where what goes there is not fit for publication.

    >>> marked(Path("out/samples.npz"), publishable=False).name
    'samples-NOT-FOR-PUBLICATION.npz'
    >>> marked(Path("out/samples.npz"), publishable=True).name
    'samples.npz'
    """
    if target.name in ("", ".."):
        target = target.resolve()
    suffix = target.suffix if is_npz(target) else ""
    stem = target.name.removesuffix(suffix)
    if publishable or not stem or stem.endswith(UNFIT_MARK):
        return target
    return target.with_name(f"{stem}-{UNFIT_MARK}{suffix}")


def check_target(target: Path, *, overwrite: bool, num_bytes: int) -> None:
    """Refuse a target that cannot be written, or holds something, before anything is drawn.

    Raises:
        RunError: says why and what to do.
    """
    if target.suffix.lower() in _NOT_A_FOLDER:
        raise RunError(
            f"--out {target}: samples are not written as {target.suffix}; give FILE.npz or a folder"
        )
    check_parent(target, "--out")
    if os.path.lexists(target):
        if not overwrite:
            raise RunError(f"--out {target}: exists already; choose another, or give --overwrite")
        if is_npz(target) != target.is_file():
            kind = "a file" if is_npz(target) else "a folder"
            raise RunError(f"--out {target}: is not {kind}, so it is not overwritten; choose another")
        if target.is_dir() and not _holds_only_samples(target):
            raise RunError(f"--out {target}: holds other things than samples; choose another folder")
    free = shutil.disk_usage(target.absolute().parent).free
    if num_bytes > free:
        raise RunError(
            f"--num-samples: the images need {num_bytes / 2**30:.3g} GiB, but {target.absolute().parent} has "
            f"{free / 2**30:.3g} GiB left; ask for fewer, or choose another --out"
        )


def write_npz(target: Path, images: np.ndarray, labels: np.ndarray) -> None:
    """``x`` uint8 [N, C, H, W] and ``y`` int64 [N]; equal samples give equal files."""
    temporary = _temporary(target)
    try:
        with temporary.open("xb") as file:
            np.savez(file, x=images, y=labels)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_folder(
    target: Path,
    images: np.ndarray,
    labels: np.ndarray,
    classes: Sequence[str],
    asked: Sequence[int] | None = None,
) -> tuple[str, ...]:
    """One sub-folder a class, PNGs numbered as they were drawn.

    Args:
        target: the folder.
        images: uint8 [N, C, H, W].
        labels: class numbers [N].
        classes: their names.
        asked: numbers of the classes that get a sub-folder; left out, all of them, also one without images.

    Returns:
        The sub-folders' names: the classes' own, or their numbers where one of them cannot name a folder.
    """
    from PIL import Image

    names = folder_names(classes)
    temporary = _temporary(target)
    try:
        temporary.mkdir()
        for name in names if asked is None else [names[number] for number in asked]:
            (temporary / name).mkdir()
        for number, (image, label) in enumerate(zip(images, labels, strict=True)):
            pixels = image[0] if len(image) == 1 else np.moveaxis(image, 0, 2)
            Image.fromarray(pixels).save(temporary / names[int(label)] / f"{number:06d}.png")
        _put_in_place(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return names


def folder_names(classes: Sequence[str]) -> tuple[str, ...]:
    """Sub-folder names of the classes, safe on every system and distinct in every case.

    >>> folder_names(["cat", "../dog"])
    ('0', '1')
    """
    folded = [unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold()) for name in classes]
    plain = all(map(_names_a_folder, classes, folded))
    if plain and len(set(folded)) == len(classes):
        return tuple(classes)
    return tuple(str(number) for number in range(len(classes)))


def _names_a_folder(name: str, folded: str) -> bool:
    """Whether a class's own name can be the name of a folder, on every system."""
    return (
        name.isprintable()
        and _SAFE.fullmatch(name) is not None
        and name == name.strip()
        and not name.endswith(".")
        and len(unicodedata.normalize("NFD", name).encode()) <= _MOST_BYTES
        and folded not in _SPLIT_NAMES
        and _DEVICES.fullmatch(folded) is None
    )


def _put_in_place(temporary: Path, target: Path) -> None:
    if not target.exists():
        temporary.rename(target)
        return
    old = _temporary(target)
    target.rename(old)
    try:
        temporary.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _holds_only_samples(folder: Path) -> bool:
    return all(
        entry.is_dir()
        and not entry.is_symlink()
        and all(file.is_file() and _OURS.fullmatch(file.name) for file in entry.iterdir())
        for entry in folder.iterdir()
    )


def _temporary(target: Path) -> Path:
    return target.absolute().with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
