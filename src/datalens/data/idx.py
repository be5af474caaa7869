"""The IDX file format (two zero bytes, type, number of axes, their lengths, the values), plain or gzipped."""

from __future__ import annotations

import gzip
import hashlib
import math
import struct
import zlib
from pathlib import Path

import numpy as np

from datalens.errors import DataError

_DTYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: Path) -> np.ndarray:
    """The array in an IDX file; a name that ends in ``.gz`` is unpacked first.

    Args:
        path: the file.

    Returns:
        A writable array of the file's own type and axes, in native byte order.

    Raises:
        DataError: the file is missing, unreadable, or its header and length disagree; names the file.
    """
    return parse_idx(read_uncompressed(path), str(path))


def parse_idx(data: bytes, name: str) -> np.ndarray:
    """The array in the bytes of an IDX file; ``name`` is for the error message.

    >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]), "three bytes").tolist()
    [7, 8, 9]

    Raises:
        DataError: wrong magic number, or a length that the header does not promise.
    """
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _DTYPES or data[3] == 0:
        shown = data[:4].hex(" ") or "nothing"
        raise DataError(f"{name}: not an IDX file (it begins with {shown}); fetch the file again")
    dtype, num_axes = np.dtype(_DTYPES[data[2]]), data[3]
    start = 4 + 4 * num_axes
    if len(data) < start:
        raise DataError(
            f"{name}: IDX header of {start} bytes is cut off at {len(data)}; fetch the file again"
        )
    shape = struct.unpack(f">{num_axes}I", data[4:start])
    promised, found = math.prod(shape) * dtype.itemsize, len(data) - start
    if promised != found:
        raise DataError(
            f"{name}: IDX header promises {promised} bytes for shape {shape}, but {found} follow; "
            "fetch the file again"
        )
    return np.frombuffer(data, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))


def read_uncompressed(path: Path) -> bytes:
    """The bytes of a file, unpacked where its name ends in ``.gz``.

    Raises:
        DataError: the file cannot be read, or is not whole gzip data; names the file.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror or error}); check the path and rights"
        ) from error
    if path.suffix != ".gz":
        return data
    if not data:
        raise DataError(f"{path}: is empty; fetch the file again")
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: is not whole gzip data ({error}); fetch the file again") from error


def md5_of(data: bytes) -> str:
    """The MD5 digest by which published files are told apart from damaged ones (not a security measure)."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()
