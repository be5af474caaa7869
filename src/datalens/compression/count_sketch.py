"""A count sketch (FetchSGD): coordinates are added up, with signs, in a few rows of buckets, and read back.

Hashes and signs are fixed by the sizes alone, so they are public and the sensitivity of a sketch is a number that
anybody can work out before a run.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from datalens.compression.topk_sign import keep_largest
from datalens.errors import ConfigError


@dataclass(frozen=True, eq=False)
class CountSketch:
    """The public hashes of a sketch; make one with :func:`count_sketch`.

    Attributes:
        buckets: of a row.
        bucket_JD: int64, the bucket of each coordinate in each row j.
        sign_JD: int64 in {-1, 1}.

    Guarantee: sketching is linear, so the sketch of a sum of votes is the sum of their sketches.

    Source: Charikar, Chen and Farach-Colton 2002; Rothchild et al. 2020 (FetchSGD).
    """

    buckets: int
    bucket_JD: np.ndarray
    sign_JD: np.ndarray

    @property
    def rows(self) -> int:
        """Rows, J."""
        return len(self.bucket_JD)

    def sketch(self, tally_BD: Tensor) -> Tensor:
        """Integers [B, D] to their table: int64 [B, rows, buckets]."""
        tally_BD = tally_BD.to(torch.int64)
        table = torch.zeros(len(tally_BD), self.rows, self.buckets, dtype=torch.int64, device=tally_BD.device)
        bucket_JD, sign_JD = self._on(tally_BD)
        for row in range(self.rows):
            table[:, row].index_add_(1, bucket_JD[row], tally_BD * sign_JD[row])
        return table

    def unsketch(self, table: Tensor) -> Tensor:
        """A table [B, rows, buckets] to an estimate of each coordinate [B, D]: the median of its rows."""
        bucket_JD, sign_JD = self._on(table)
        return (
            torch.stack([table[:, row, bucket_JD[row]] * sign_JD[row] for row in range(self.rows)])
            .median(0)
            .values
        )

    def _on(self, like: Tensor) -> tuple[Tensor, Tensor]:
        return torch.from_numpy(self.bucket_JD).to(like.device), torch.from_numpy(self.sign_JD).to(
            like.device
        )


@lru_cache(maxsize=8)
def count_sketch(dim: int, rows: int, buckets: int) -> CountSketch:
    """The sketch of ``dim`` coordinates: words of SHAKE-256 of a public name that holds the sizes.

    Args:
        dim: coordinates, D.
        rows: odd, so that the median is one of them.
        buckets: of a row.

    Raises:
        ConfigError: a size without meaning.

    >>> count_sketch(784, 5, 500).sketch(torch.ones(1, 784)).shape
    torch.Size([1, 5, 500])
    """
    if min(dim, rows, buckets) < 1 or rows % 2 == 0:
        raise ConfigError(
            f"a sketch of {dim} coordinates in {rows} rows of {buckets} buckets: rows must be odd, all 1 or more"
        )
    name = f"datalens count sketch {dim} {rows} {buckets}"
    words = np.frombuffer(hashlib.shake_256(name.encode()).digest(8 * rows * dim), "<u8").reshape(rows, dim)
    bucket_JD = ((words >> np.uint64(1)) % np.uint64(buckets)).astype(np.int64)
    sign_JD = 2 * (words & np.uint64(1)).astype(np.int64) - 1
    return CountSketch(buckets, bucket_JD, sign_JD)


def keep_top(estimate_BD: Tensor, top_k: int) -> Tensor:
    """The ``top_k`` entries of each row that are largest in magnitude, ties to the lowest index; the rest are 0.

    >>> keep_top(torch.tensor([[4, -5, 1, 4]]), 2).tolist()
    [[4, -5, 0, 0]]
    """
    return estimate_BD * keep_largest(estimate_BD.abs().to(torch.float32), top_k)
