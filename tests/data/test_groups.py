"""Group ids: the same for the same text, in int64, and as BLAKE2b has them."""

from __future__ import annotations

import hashlib

import numpy as np

from datalens.data.groups import group_id


def test_an_id_is_the_first_63_bits_of_blake2b() -> None:
    for text in ("", "celeba 2880", "emoji 1F600", "Fähre"):
        bits = "".join(f"{byte:08b}" for byte in hashlib.blake2b(text.encode(), digest_size=8).digest())
        assert group_id(text) == int(bits[:63], 2)


def test_ids_fit_int64_and_differ() -> None:
    ids = np.array([group_id(str(number)) for number in range(10_000)], np.int64)
    assert ids.min() >= 0 and len(np.unique(ids)) == len(ids)
    assert ids.max() > 2**62, "all 63 bits are used"
