"""Pictures of one size from many files, decoded once and kept as one array beside them.

The array lies in ``decoded/`` of the set's folder, under a name with a digest of what it was made from: the
pictures' names and sizes in bytes, and what was done to them. A picture that changes its size makes another array.
Where nothing can be written there, pictures are decoded at every reading.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import secrets
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
from PIL import Image, UnidentifiedImageError

from datalens.errors import DataError

SIDE = 64
CACHE = "decoded"
_SHAPE = (3, SIDE, SIDE)


class PictureStore(Protocol):
    """Where the files of pictures lie."""

    @property
    def path(self) -> Path:
        """The folder or archive."""
        ...

    def size(self, name: str) -> int | None:
        """Bytes of a file; None where there is none."""
        ...

    def read(self, name: str) -> bytes:
        """A file's bytes."""
        ...


@dataclass(frozen=True)
class FolderStore:
    """Pictures in a folder, by their path in it."""

    path: Path

    def size(self, name: str) -> int | None:
        """Bytes of a file; None where there is none."""
        try:
            return os.stat(self.path / name).st_size
        except OSError:
            return None

    def read(self, name: str) -> bytes:
        """A file's bytes."""
        return (self.path / name).read_bytes()


@dataclass(frozen=True)
class ZipStore:
    """Pictures in a .zip file, below a folder of it.

    Raises:
        DataError: it is no such file.
    """

    path: Path
    folder: str

    def __post_init__(self) -> None:
        if not zipfile.is_zipfile(self.path):
            raise DataError(f"{self.path}: is no .zip file, or only a part of one; get the file again")

    @cached_property
    def _archive(self) -> zipfile.ZipFile:
        return zipfile.ZipFile(self.path)

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return {member.filename: member.file_size for member in self._archive.infolist()}

    def size(self, name: str) -> int | None:
        """Bytes of a file; None where there is none."""
        return self._sizes.get(f"{self.folder}/{name}")

    def read(self, name: str) -> bytes:
        """A file's bytes."""
        return self._archive.read(f"{self.folder}/{name}")


@dataclass(frozen=True)
class Conversion:
    """What is done to every picture.

    Attributes:
        name: stands for it in the array's name; another one whenever pixels change.
        to_rgb: the picture as read -> RGB, 64x64; a ``ValueError`` with the reason refuses a picture.
    """

    name: str
    to_rgb: Callable[[Image.Image], Image.Image]


def missing_pictures(store: PictureStore, names: Sequence[str]) -> list[str]:
    """Which of the files are not there."""
    return [name for name in names if store.size(name) is None]


def decode(store: PictureStore, names: Sequence[str], conversion: Conversion, cache: Path) -> np.ndarray:
    """The pictures as uint8 [R, 3, 64, 64], in the order of their names.

    Args:
        store: where their files lie.
        names: which.
        conversion: to 64x64.
        cache: folder of arrays, made where it is missing and can be.

    Returns:
        An array whose pages come from the kept file where there is one; changes to it stay in memory.

    Raises:
        DataError: a file that is missing, damaged, or that the conversion refuses, by its name.
    """
    lacking = missing_pictures(store, names)
    if lacking:
        raise DataError(
            f"{store.path}: {len(lacking)} of {len(names)} listed pictures are not there, the first {lacking[0]}; "
            "unpack the archive again"
        )
    path = cache / f"{conversion.name}-{_digest(store, names, conversion)}.npy"
    shape = (len(names), *_SHAPE)
    held = _kept(path, shape)
    if held is not None:
        return held
    try:
        _keep(path, shape, _pictures(store, names, conversion))
    except OSError:  # nothing can be kept here
        return _in_memory(shape, _pictures(store, names, conversion))
    held = _kept(path, shape)
    return _in_memory(shape, _pictures(store, names, conversion)) if held is None else held


def _digest(store: PictureStore, names: Sequence[str], conversion: Conversion) -> str:
    digest = hashlib.blake2b(conversion.name.encode(), digest_size=8)
    for name in names:
        digest.update(f"\n{name} {store.size(name)}".encode())
    return digest.hexdigest()


def _pictures(store: PictureStore, names: Sequence[str], conversion: Conversion) -> Iterator[np.ndarray]:
    for name in names:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with Image.open(io.BytesIO(store.read(name)), formats=("PNG", "JPEG")) as picture:
                    pixels = np.asarray(conversion.to_rgb(picture))
        except (
            OSError, ValueError, SyntaxError, struct.error, zlib.error, zipfile.BadZipFile,
            UnidentifiedImageError, Image.DecompressionBombError,
        ) as error:  # fmt: skip
            reason = "no picture" if isinstance(error, UnidentifiedImageError) else error
            raise DataError(f"{store.path / name}: can't be used ({reason}); get the file again") from None
        yield np.moveaxis(pixels, 2, 0)


def _in_memory(shape: tuple[int, ...], pictures: Iterator[np.ndarray]) -> np.ndarray:
    found = np.empty(shape, np.uint8)
    for place, pixels in enumerate(pictures):
        found[place] = pixels
    return found


def _keep(path: Path, shape: tuple[int, ...], pictures: Iterator[np.ndarray]) -> None:
    """Write the array whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("wb") as file:
            header = {"descr": "|u1", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for pixels in pictures:
                file.write(pixels.tobytes())
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _kept(path: Path, shape: tuple[int, ...]) -> np.ndarray | None:
    try:
        held = np.load(path, mmap_mode="c", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return held if held.shape == shape and held.dtype == np.uint8 else None
