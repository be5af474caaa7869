"""The IDX reader reads every type, plain and gzipped, and names a file that is not whole."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from datalens.data.idx import read_idx
from datalens.errors import DataError

CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}


def idx_bytes(array: np.ndarray) -> bytes:
    code = CODES[array.dtype.str[1:]]
    header = bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


@pytest.mark.parametrize("kind", sorted(CODES))
@pytest.mark.parametrize("shape", [(7,), (2, 3), (2, 3, 4)])
def test_round_trip(tmp_path: Path, kind: str, shape: tuple[int, ...]) -> None:
    array = (np.arange(np.prod(shape)).reshape(shape) * 5 % 101).astype(kind)
    (tmp_path / "plain").write_bytes(idx_bytes(array))
    (tmp_path / "packed.gz").write_bytes(gzip.compress(idx_bytes(array), mtime=0))
    for name in ("plain", "packed.gz"):
        found = read_idx(tmp_path / name)
        assert found.dtype == array.dtype
        assert found.flags.writeable
        np.testing.assert_array_equal(found, array)


WHOLE = idx_bytes(np.arange(6, dtype=np.uint8).reshape(2, 3))


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("short", WHOLE[:-1], "promises 6 bytes.* 5 follow"),
        ("long", WHOLE + b"\0", "promises 6 bytes.* 7 follow"),
        ("header", WHOLE[:9], "cut off at 9"),
        ("magic", b"<htm" + WHOLE[4:], "not an IDX file"),
        ("type", b"\0\0\x0a\x01" + WHOLE[4:], "not an IDX file"),
        ("axes", b"\0\0\x08\x00", "not an IDX file"),
        ("empty", b"", "nothing"),
        ("empty.gz", b"", "is empty"),
        ("html.gz", b"<html>not found</html>", "not whole gzip"),
        ("cut.gz", gzip.compress(WHOLE, mtime=0)[:-4], "not whole gzip"),
        ("huge", b"\0\0\x08\x03" + b"\xff" * 12, "promises 79228162458924105385300197375 bytes"),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, name: str, data: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=reason) as caught:
        read_idx(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.gz: cannot be read \(No such file"):
        read_idx(tmp_path / "none.gz")
