"""No noise at all: for finding out what a pipeline could do without privacy."""

from __future__ import annotations

import numpy as np

from datalens.privacy.events import NoiseKind, SamplerSlack


class NoNoise:
    """Zeros. A release with it has infinite epsilon.

    >>> NoNoise().sample((2,), stddev=5.0).tolist()
    [0, 0]
    """

    kind = NoiseKind.NONE
    secure = False

    def sample(self, shape: tuple[int, ...], stddev: float) -> np.ndarray:
        """Zeros, int64; ``stddev`` is not used."""
        return np.zeros(shape, dtype=np.int64)

    def slack(self, stddev: float) -> SamplerSlack:
        """Zero: there is nothing to be exact about."""
        return SamplerSlack(eta=0.0, tau=0.0)
