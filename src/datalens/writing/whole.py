"""Samples are whole or not there at all: a temporary name, then the exchange with what was there."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from datalens.errors import RunError
from datalens.privacy.durable import sync_folder
from datalens.writing import idx, on_disk
from datalens.writing.arrow import load_pyarrow
from datalens.writing.contents import Contents, Writer
from datalens.writing.folder import folder_writer
from datalens.writing.kinds import SampleFormat
from datalens.writing.npz import npz_writer
from datalens.writing.parquet import parquet_writer

WRITERS: dict[SampleFormat, Writer] = {
    SampleFormat.NPZ: npz_writer,
    SampleFormat.FOLDER: folder_writer,
    SampleFormat.PARQUET: parquet_writer,
    SampleFormat.IDX: idx.idx_writer,
    SampleFormat.DATASETS: on_disk.on_disk_writer,
}
_LABEL_BYTES = {SampleFormat.NPZ: 8, SampleFormat.IDX: 1}
_PNG_BYTES, _ROW_BYTES, _BLOCK = 120, 1, 4096
"""What PNG and a row of a table add to an image's pixels, and to each line of them; and a file system's block."""
_OUR_PNG = re.compile(r"[0-9]{6,}\.png")
_OUR_FILES = ({idx.IMAGES_NAME, idx.LABELS_NAME}, {on_disk.DATA_NAME, on_disk.STATE_NAME, on_disk.INFO_NAME})


def check_format(form: SampleFormat, contents: Contents) -> None:
    """Refuse early a form that cannot hold these images, or whose package is not here.

    Raises:
        ConfigError: says what does not fit; a :class:`datalens.errors.MissingExtraError` how to install it.
    """
    if form is SampleFormat.IDX:
        idx.check_idx(contents)
    elif form in (SampleFormat.PARQUET, SampleFormat.DATASETS):
        load_pyarrow(form)


def room_needed(form: SampleFormat, contents: Contents) -> int:
    """Bytes on the disk for images that PNG cannot make smaller; each file of a folder takes whole blocks.

    >>> room_needed(SampleFormat.NPZ, Contents(10, (1, 28, 28), ("a", "b")))
    7920
    """
    if form in _LABEL_BYTES:
        return contents.num_bytes + contents.num_images * _LABEL_BYTES[form]
    channels, height, width = contents.image_shape
    an_image = channels * height * width + height * _ROW_BYTES + _PNG_BYTES
    if form is SampleFormat.FOLDER:
        an_image = _BLOCK * -(-an_image // _BLOCK)
    return contents.num_images * an_image


def write_samples(
    target: Path,
    form: SampleFormat,
    contents: Contents,
    chunks: Iterable[tuple[np.ndarray, np.ndarray]],
    *,
    overwrite: bool = False,
) -> None:
    """Write images as they come, such as those of ``model.iter_samples``; no more than a chunk is held.

    Args:
        target: a file (npz, parquet) or a folder (the other forms).
        form: of what is written.
        contents: what the images will be, all of them together.
        chunks: pairs of uint8 [B, C, H, W] and class numbers [B].
        overwrite: whether what is there may be replaced.

    Guarantee:
        The target appears when all is written and flushed, at once; after a failure or an interruption it is as
        it was before, and nothing is left beside it. Equal chunks give equal files.

    Raises:
        ConfigError: a form that cannot hold these images, whose package is missing, or another number of images.
        RunError: the target is there already.
        OSError: of the system, such as a full disk.

    >>> import tempfile
    >>> images, labels = np.zeros((3, 1, 4, 4), np.uint8), np.array([0, 1, 0])
    >>> with tempfile.TemporaryDirectory() as place:
    ...     target = Path(place) / "a.npz"
    ...     write_samples(target, SampleFormat.NPZ, Contents.of(images, "ab"), [(images, labels)])
    ...     np.load(target, allow_pickle=False)["y"].tolist()
    [0, 1, 0]
    """
    check_format(form, contents)
    write_whole(target, WRITERS[form], contents, chunks, overwrite=overwrite)


def write_whole(
    target: Path,
    writer: Writer,
    contents: Contents,
    chunks: Iterable[tuple[np.ndarray, np.ndarray]],
    *,
    overwrite: bool = False,
) -> None:
    """:func:`write_samples` for any writer, with the same guarantee.

    Raises:
        ConfigError, RunError, OSError: as there.
    """
    _refuse_what_is_there(target, overwrite)
    temporary = _temporary(target)
    try:
        with writer(temporary, contents) as add:
            count = 0
            for images, labels in chunks:
                count += len(labels)
                add(images, labels)
            contents.check_count(count)
        _refuse_what_is_there(target, overwrite)  # the drawing may have taken minutes
        _put_in_place(temporary, target)
    finally:
        _remove(temporary)


def holds_only_samples(folder: Path) -> bool:
    """Whether a folder holds nothing but what one of our forms of folders is made of."""
    entries = list(folder.iterdir())
    if any({entry.name for entry in entries} == ours for ours in _OUR_FILES):
        return all(entry.is_file() and not entry.is_symlink() for entry in entries)
    return all(
        entry.is_dir()
        and not entry.is_symlink()
        and all(file.is_file() and _OUR_PNG.fullmatch(file.name) for file in entry.iterdir())
        for entry in entries
    )


def _refuse_what_is_there(target: Path, overwrite: bool) -> None:
    if not overwrite and os.path.lexists(target):
        raise RunError(f"{target}: exists already; choose another name, or say that it may be overwritten")


def _put_in_place(temporary: Path, target: Path) -> None:
    if not (temporary.is_dir() and target.exists()):
        temporary.replace(target)
    else:
        old = _temporary(target)
        target.rename(old)
        try:
            temporary.rename(target)
        except BaseException:
            old.rename(target)
            raise
        _remove(old)
    sync_folder(target.absolute().parent)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _temporary(target: Path) -> Path:
    return target.absolute().with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
