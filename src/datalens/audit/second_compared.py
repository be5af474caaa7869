"""What a step of the mechanisms that TopAgg is compared with costs, a second time, by code of its own."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

D2P, PUBLISHED, SOUND = "d2p-fed", "fetchsgd", "fetchsgd-sound"
OWN_SETTINGS: dict[str, tuple[str, ...]] = {D2P: ("levels",), PUBLISHED: ("sketch_rows", "sketch_buckets")}
OWN_SETTINGS[SOUND] = OWN_SETTINGS[PUBLISHED]
_LARGEST_SIDE = 2048
_SPARE = 1 + 1e-9


def compared_charge(mechanism: Mapping[str, Any], images: int) -> tuple[float, int] | None:
    """Sensitivity of a step for one record, and the numbers released; None for TopAgg and what is charged like it."""
    batch, dim = mechanism["batch_size"], mechanism["coordinates"]
    if mechanism["name"] == D2P:
        width = 1
        while width < dim:
            width *= 2
        return 2 * (mechanism["levels"] - 1) * math.sqrt(width * images), batch * width
    if mechanism["name"] == SOUND:
        rows, buckets = mechanism["sketch_rows"], mechanism["sketch_buckets"]
        bound = _table_norm(dim, rows, buckets, mechanism["top_k"])
        return 2.0 * math.sqrt(images) * bound, batch * rows * buckets
    return None


def charged_noise(mechanism: Mapping[str, Any]) -> str:
    """The noise that a release may be charged for: what is run as published counts as having none."""
    return "none" if mechanism["name"] == PUBLISHED else mechanism["noise"]


@lru_cache(maxsize=8)
def _table_norm(dim: int, rows: int, buckets: int, top_k: int) -> float:
    """How long the table of ``top_k`` votes can be: the smaller of two bounds."""
    places, signs = _hashes(dim, rows, buckets)
    squares, fullest = 0, 0
    for row in places:
        left = top_k
        fills = sorted(Counter(row).values(), reverse=True)
        fullest = max(fullest, fills[0])
        for fill in fills:
            taken = min(left, fill)
            squares, left = squares + taken * taken, left - taken
    if min(dim, rows * buckets) > _LARGEST_SIDE:
        norm = math.sqrt(rows * fullest)
    else:
        matrix = np.zeros((rows, buckets, dim))
        for j, row in enumerate(places):
            matrix[j, row, range(dim)] = signs[j]
        norm = float(np.linalg.norm(matrix.reshape(rows * buckets, dim), 2)) * _SPARE
    return min(norm * math.sqrt(top_k), math.sqrt(squares))


def _hashes(dim: int, rows: int, buckets: int) -> tuple[list[list[int]], list[list[int]]]:
    """Bucket and sign of each coordinate in each row, eight bytes each, the lowest bit the sign."""
    stream = hashlib.shake_256(f"datalens count sketch {dim} {rows} {buckets}".encode()).digest(
        8 * rows * dim
    )
    words = [int.from_bytes(stream[i : i + 8], "little") for i in range(0, len(stream), 8)]
    table = [words[j * dim : (j + 1) * dim] for j in range(rows)]
    return (
        [[(word >> 1) % buckets for word in row] for row in table],
        [[2 * (word & 1) - 1 for word in row] for row in table],
    )
