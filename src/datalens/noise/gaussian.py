"""Continuous Gaussian noise in double precision, for experiments: its floating point is not covered.

A float64 normal takes only some of the real values, and which ones depends on what it is added to; the
privacy proof for real numbers does not hold for it. So it never counts as secure, even with bits from the
operating system.
"""

from __future__ import annotations

import math

import numpy as np

from datalens.noise.base import check_stddev
from datalens.noise.entropy import Entropy, OsEntropy
from datalens.privacy.events import NoiseKind, SamplerSlack

_FRACTION_BITS = 53


class ContinuousGaussian:
    """Float64 normals by the Box-Muller transform of 53-bit uniforms; never to be published with.

    >>> ContinuousGaussian().sample((2,), stddev=1.0).dtype.name
    'float64'
    """

    kind = NoiseKind.CONTINUOUS
    secure = False

    def __init__(self, entropy: Entropy | None = None) -> None:
        self._entropy: Entropy = OsEntropy() if entropy is None else entropy

    def sample(self, shape: tuple[int, ...], stddev: float) -> np.ndarray:
        """Fresh float64 noise of this shape."""
        scale = check_stddev(stddev)
        count = math.prod(shape)
        pairs = (count + 1) // 2
        words = (self._entropy.words(2 * pairs) >> np.uint64(64 - _FRACTION_BITS)).astype(np.float64)
        uniforms = np.ldexp(words + 0.5, -_FRACTION_BITS).reshape(2, pairs)  # never 0
        radius = scale * np.sqrt(-2.0 * np.log(uniforms[0]))
        angle = 2.0 * np.pi * uniforms[1]
        normals = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
        return normals[:count].reshape(shape)

    def slack(self, stddev: float) -> SamplerSlack:
        """Zero: that of an ideal sampler, which this is not; hence ``secure`` is False."""
        check_stddev(stddev)
        return SamplerSlack(eta=0.0, tau=0.0)
