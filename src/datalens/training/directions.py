"""The record of what was released: every direction, on disk before the student uses it. Public.

One file, only ever appended to. It begins with a magic line; each record holds the step, the shape, the hash of
the ledger line that paid for it, the directions packed four to a byte, and a SHA-256 over all of that. A record
that was cut off by a crash is dropped when the file is opened again: the step was charged and is lost.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from datalens.errors import CheckpointError, RunError
from datalens.privacy.durable import write_all
from datalens.training.files import write_atomically

MAGIC = b"datalens directions 1\n"
_HEAD = struct.Struct(">4sIII32s")
_MARK = b"step"
_DIGEST = 32
_MOST_VALUES = 2**31


@dataclass(frozen=True, eq=False)
class DirectionRecord:
    """One released step.

    Attributes:
        step: the generator step.
        direction_BD: int8 in {-1, 0, 1}.
        line_hash: the ledger line that charged it.
    """

    step: int
    direction_BD: Tensor
    line_hash: str


def note_of_no_update(records: Sequence[DirectionRecord]) -> str | None:
    """One line where nothing that was released says which way to go, or None. Public, as releases are."""
    if not records or any(bool(record.direction_BD.any()) for record in records):
        return None
    return (
        f"no update was applied: all {len(records)} directions that were released are zero, so the generator learnt "
        "nothing; lower --vote-threshold (voting.vote_threshold), or use more teachers, records or steps"
    )


class DirectionLog:
    """The open record of a run.

    Args:
        path: the file; made if absent, its cut-off end dropped if there is one.

    Raises:
        CheckpointError: the file is damaged before its end.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.records: list[DirectionRecord] = []
        self._descriptor: int | None = None
        try:
            content = path.read_bytes() if path.exists() else b""
            if len(content) < len(MAGIC) and MAGIC.startswith(content):
                write_atomically(path, MAGIC)
                content = MAGIC
            self._size = len(MAGIC)
            for record, end in _parse(content, path):
                self.records.append(record)
                self._size = end
            self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            if self._size < len(content):
                os.ftruncate(self._descriptor, self._size)
                os.fsync(self._descriptor)
        except OSError as error:
            self.close()
            raise RunError(f"{path}: cannot be opened ({error.strerror}); permit it, then resume") from None

    def append(self, record: DirectionRecord) -> None:
        """Add one step and return once it is on disk.

        Raises:
            RunError: it cannot be written; the file is as it was.
        """
        if self._descriptor is None:
            raise RunError(f"{self._path}: was closed; resume the run")
        encoded = encode_record(record)
        try:
            write_all(self._descriptor, encoded)
            os.fsync(self._descriptor)
        except OSError as error:
            with suppress(OSError):  # what cannot be taken back is a cut-off end at the next opening
                os.ftruncate(self._descriptor, self._size)
            raise RunError(
                f"{self._path}: cannot be written ({error.strerror}); make room, then resume the run"
            ) from None
        self._size += len(encoded)
        self.records.append(record)

    def close(self) -> None:
        """Close the file; :attr:`records` stay."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def write_directions(path: Path, records: Iterable[DirectionRecord]) -> None:
    """Write a whole record at once, for a run that was kept in memory.

    Raises:
        RunError: it cannot be written.
    """
    write_atomically(path, MAGIC + b"".join(encode_record(record) for record in records))


def read_directions(path: Path) -> list[DirectionRecord]:
    """All whole records of a file, in the order of release; the file is not changed.

    Raises:
        CheckpointError: not such a file, or damaged before its end.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}); restore the file") from None
    return [record for record, _ in _parse(content, path)]


def encode_record(record: DirectionRecord) -> bytes:
    """One record as it stands in the file."""
    images, coordinates = record.direction_BD.shape
    flat = record.direction_BD.detach().cpu().to(torch.int8).numpy().reshape(-1).view(np.uint8) & 3
    padded = np.zeros(-(-flat.size // 4) * 4, np.uint8)
    padded[: flat.size] = flat
    quarters = padded.reshape(-1, 4)
    packed = quarters[:, 0] | quarters[:, 1] << 2 | quarters[:, 2] << 4 | quarters[:, 3] << 6
    head = _HEAD.pack(_MARK, record.step, images, coordinates, bytes.fromhex(record.line_hash))
    body = head + packed.astype(np.uint8).tobytes()
    return body + hashlib.sha256(body).digest()


def _parse(content: bytes, path: Path) -> Iterator[tuple[DirectionRecord, int]]:
    """Each whole record and where it ends; stops at a cut-off end."""
    if not content.startswith(MAGIC):
        raise CheckpointError(f"{path}: is not a record of released directions; restore the file")
    start, last_step = len(MAGIC), -1
    while len(content) - start >= _HEAD.size:
        mark, step, images, coordinates, line_hash = _HEAD.unpack_from(content, start)
        size = images * coordinates
        packed = -(-size // 4)
        end = start + _HEAD.size + packed + _DIGEST
        if mark != _MARK or not 0 < size < _MOST_VALUES or step <= last_step:
            raise CheckpointError(f"{path}: damaged after step {last_step}; restore the file")
        if end > len(content):
            return
        body, digest = content[start : end - _DIGEST], content[end - _DIGEST : end]
        if hashlib.sha256(body).digest() != digest:
            raise CheckpointError(f"{path}: step {step} is damaged; restore the file")
        values = np.frombuffer(body, np.uint8, packed, _HEAD.size)
        flat = np.stack([values >> shift & 3 for shift in (0, 2, 4, 6)], 1).reshape(-1)[:size]
        signs = np.array([0, 1, 0, -1], np.int8)[flat]
        direction = torch.from_numpy(signs.reshape(images, coordinates))
        yield DirectionRecord(step, direction, line_hash.hex()), end
        start, last_step = end, step
