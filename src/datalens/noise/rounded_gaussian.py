"""The default noise: a continuous Gaussian rounded to integers, drawn by exact table look-up.

Votes are integers, so adding ``round(N(0, s^2))`` is the same as rounding the votes plus ``N(0, s^2)``:
post-processing of the continuous Gaussian mechanism, whose exact privacy curve therefore holds. No floating
point number takes part in a draw: 63 random bits and the sign are compared with integer thresholds, and only
on a tie (about once in 10**14 draws) another 128 bits decide, which gives the same distribution as 192 bits
for every draw.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from datalens.noise.base import check_stddev
from datalens.noise.entropy import Entropy, OsEntropy
from datalens.noise.table import LOW_BITS, MagnitudeTable, build_table
from datalens.privacy.events import NoiseKind, SamplerSlack

_LOW_WORDS = LOW_BITS // 64

cached_table: Callable[[float], MagnitudeTable] = lru_cache(maxsize=8)(build_table)
"""Tables of the standard deviations in use; a table is immutable and holds nothing secret."""


class RoundedGaussian:
    """Gaussian noise rounded to the nearest integer.

    Args:
        entropy: where the bits come from; the operating system unless given.

    Guarantee:
        Every draw uses fresh words of ``entropy``. Inside a core that leaves out mass ``tau`` the log
        probability of each integer is within ``eta`` of the ideal one; see :meth:`slack`.

    Source: proof in ``docs/privacy.md``.

    >>> noise = RoundedGaussian().sample((2, 3), stddev=8.0)
    >>> noise.shape, noise.dtype.name
    ((2, 3), 'int64')
    """

    kind = NoiseKind.ROUNDED

    def __init__(self, entropy: Entropy | None = None) -> None:
        self._entropy: Entropy = OsEntropy() if entropy is None else entropy

    @property
    def secure(self) -> bool:
        """Whether the bits come from a source nobody can predict."""
        return self._entropy.secure

    def sample(self, shape: tuple[int, ...], stddev: float) -> np.ndarray:
        """Fresh int64 noise of this shape; variance ``stddev**2 + 1/12`` for ``stddev`` of 1 and more.

        Raises:
            ConfigError: ``stddev`` outside [0.25, 131072].
        """
        table = cached_table(check_stddev(stddev))
        words = self._entropy.words(math.prod(shape))
        negative = (words & np.uint64(1)).astype(bool)
        magnitude = self._magnitudes(table, words >> np.uint64(1))
        return np.where(negative, -magnitude, magnitude).reshape(shape)

    def slack(self, stddev: float) -> SamplerSlack:
        """Proved bounds for one coordinate: ``eta`` on log probabilities in the core, ``tau`` on the tail."""
        return cached_table(check_stddev(stddev)).slack

    def _magnitudes(self, table: MagnitudeTable, high: np.ndarray) -> np.ndarray:
        """Number of thresholds above each draw, whose leading 63 bits are given."""
        place = np.searchsorted(table.high, high, side="left")
        magnitude = (table.largest - place).astype(np.int64, copy=False)
        tied = np.flatnonzero(table.high[np.minimum(place, table.largest - 1)] == high)
        for index in tied:
            draw = int(high[index])
            for word in self._entropy.words(_LOW_WORDS):
                draw = (draw << 64) | int(word)
            magnitude[index] = table.largest - bisect_right(table.thresholds, draw)
        return magnitude
