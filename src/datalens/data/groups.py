"""From the names of groups, such as persons, to numbers that are each a function of one name alone.

Never the place of a name among those in the data: taking a group out would then rename others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from datalens.errors import DataError

_PERSON = b"datalens group"


def group_id(text: str) -> int:
    """The number of a group: 63 bits of BLAKE2b of its name, so from 0 to 2**63 - 1.

    Two names share one with chance below 2**-62, and would then count as one group, which takes nothing from the
    guarantee.

    >>> group_id("ann") == group_id("ann"), group_id("ann") == group_id("bob"), 0 <= group_id("") < 2**63
    (True, False, True)
    """
    word = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, person=_PERSON).digest()
    return int.from_bytes(word, "big") >> 1


def group_ids_of(names: Sequence[Any] | np.ndarray, name: str = "groups") -> np.ndarray:
    """``group_ids`` for :class:`datalens.data.images.LabelledImages` from one name for each record.

    A name is text or a whole number, and 7 is the same name as "7"; its number is :func:`group_id`.

    Args:
        names: [R] or [R, 1].
        name: of the data, for errors.

    Returns:
        int64 [R], from 0 on.

    Raises:
        DataError: names of another kind or shape, or a record without one.

    >>> ids = group_ids_of(["ann", "bob", "ann"])
    >>> bool(ids[0] == ids[2] != ids[1]), bool(ids[1] == group_ids_of(["bob"])[0])
    (True, True)
    """
    try:
        array = _texts(np.asarray(names), name)
    except ValueError:  # rows of unequal length
        raise DataError(f"{name}: groups are no plain list; give one text or whole number a record") from None
    distinct, places = np.unique(array, return_inverse=True)
    if distinct.size and not distinct[0]:
        first = int(np.flatnonzero(array == "")[0])
        raise DataError(f"{name}: record {first} has an empty group; name the group of every record")
    digests = np.array([group_id(text) for text in distinct.tolist()], np.int64)
    return digests[places.reshape(-1)]


def _texts(names: np.ndarray, name: str) -> np.ndarray:
    """The names as an array [R] of text."""
    if names.ndim == 2 and names.shape[1] == 1:
        names = names[:, 0]
    if names.ndim != 1:
        raise DataError(f"{name}: groups have shape {names.shape}; give one group a record")
    if names.dtype == object:
        strange = [
            item for item in names.tolist() if isinstance(item, bool) or not isinstance(item, str | int)
        ]
        if strange:
            raise DataError(f"{name}: a group is {strange[0]!r:.60}; give text or whole numbers")
        return np.array([str(item) for item in names.tolist()], np.str_)
    if names.dtype.kind == "S":
        try:
            return np.char.decode(names, "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"{name}: groups hold bytes that are not UTF-8; give text") from error
    if names.dtype.kind not in "iuU":
        raise DataError(f"{name}: groups are {names.dtype}; give text or whole numbers")
    return names.astype(np.str_)
