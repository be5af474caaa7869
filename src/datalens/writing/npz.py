"""An .npz file whose images go into the archive as they come: the bytes of ``numpy.savez``."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from datalens.writing.contents import AddImages, Contents, new_file


@contextmanager
def npz_writer(path: Path, contents: Contents) -> Iterator[AddImages]:
    """``x`` uint8 [N, C, H, W] and ``y`` int64 [N]; the labels, 8 bytes an image, are kept until the end."""
    labels_so_far: list[np.ndarray] = []
    with new_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        with archive.open("x.npy", "w", force_zip64=True) as member:
            _write_header(member, "|u1", (contents.num_images, *contents.image_shape))

            def add(images: np.ndarray, labels: np.ndarray) -> None:
                member.write(images.astype(np.uint8, copy=False).tobytes())
                labels_so_far.append(np.asarray(labels, "<i8"))

            yield add
        with archive.open("y.npy", "w", force_zip64=True) as member:
            _write_header(member, "<i8", (contents.num_images,))
            for labels in labels_so_far:
                member.write(labels.tobytes())


def _write_header(member: IO[bytes], dtype: str, shape: tuple[int, ...]) -> None:
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(member, header)
