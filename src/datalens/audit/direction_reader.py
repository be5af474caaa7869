"""A second reader of released directions, for verification: it shares no code with the one that writes them.

``directions.bin`` begins with the line ``datalens directions 1``. A record is the word ``step``, three big-endian
32-bit numbers (step, images, coordinates), the 32-byte hash of the ledger line that paid, then two bits a
coordinate, lowest first, four to a byte (0 is 0, 1 is +1, 3 is -1), then SHA-256 of all of that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from datalens.audit.ledger_reader import Difference

FIRST_LINE = b"datalens directions 1\n"
_BEFORE_VALUES, _AFTER_VALUES = 48, 32


@dataclass(frozen=True, eq=False)
class Direction:
    """One released step: int8 values [images, coordinates] in {-1, 0, 1}, and the ledger line that paid."""

    step: int
    values: np.ndarray
    paid_by: str


def read_direction_records(path: Path) -> Iterator[Direction]:
    """All records, in the order of the file.

    Raises:
        Difference: missing, damaged or cut off.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Difference(f"{path.name} cannot be read ({error.strerror})") from None
    if data[: len(FIRST_LINE)] != FIRST_LINE:
        raise Difference(f"{path.name} is not a record of directions")
    at = len(FIRST_LINE)
    while at < len(data):
        if len(data) - at < _BEFORE_VALUES:
            raise Difference(f"{path.name} ends in a cut-off record; resume the run, which drops it")
        word = data[at : at + 4]
        step, images, coordinates = (int.from_bytes(data[at + i : at + i + 4], "big") for i in (4, 8, 12))
        size = images * coordinates
        end = at + _BEFORE_VALUES + (size + 3) // 4 + _AFTER_VALUES
        if word != b"step" or size == 0:
            raise Difference(f"{path.name} is damaged at byte {at}")
        if end > len(data):
            raise Difference(f"{path.name} ends in a cut-off record; resume the run, which drops it")
        if hashlib.sha256(data[at : end - _AFTER_VALUES]).digest() != data[end - _AFTER_VALUES : end]:
            raise Difference(f"{path.name}: step {step} has changed since it was released")
        packed = np.frombuffer(data, np.uint8, (size + 3) // 4, at + _BEFORE_VALUES)
        pairs = np.unpackbits(packed, bitorder="little").reshape(-1, 2)[:size].astype(np.int8)
        values = pairs[:, 0] - 2 * pairs[:, 1] * pairs[:, 0]
        if np.any(pairs[:, 1] > pairs[:, 0]):
            raise Difference(f"{path.name}: step {step} holds a value that is none of -1, 0, 1")
        yield Direction(step, values.reshape(images, coordinates), data[at + 16 : at + 48].hex())
        at = end
